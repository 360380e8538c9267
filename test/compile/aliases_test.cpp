// Views of one tensor in one fused group, one tensor as several arguments, results that are arguments,
// constants or views of these, results that become arguments, and `into` over all of them. Memory that is
// read may begin and end anywhere, and memory of the caller may not be written.
#include <catch2/catch.hpp>
#include <cmath>

#include "compile/unchanged.h"
#include "tapedeck/compile.h"
#include "tapedeck/tapedeck.h"

using namespace tapedeck;
using test::difference;
using test::Unchanged;
using Tensors = std::vector<Tensor>;

namespace {

constexpr std::int64_t kSizes[] = {1, 2, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100};

// Irregular, between -1 and 1, another one for each number.
Tensor values(const Shape& shape, DType dtype, int number) {
  std::vector<double> v(static_cast<std::size_t>(shape.size()));
  double u = 0.1 + 0.37 * number;
  for (double& e : v) {
    u = std::fmod(u + 0.6180339887498949, 1.0);
    e = 2 * u - 1;
  }
  return astype(tensor(v, shape), dtype);
}

/// Where the tensor of which views are taken comes from.
enum class From { argument, variable, captured, computed };
constexpr From kFrom[] = {From::argument, From::variable, From::captured, From::computed};

using Make = std::function<Tensors(const Tensor&)>;   // results from the tensor

/// "" if `make` in a compiled function gives what it gives outside, for a tensor of this origin, which is
/// another one in each call, and if the tensor is as it was after each.
std::string compare(const Make& make, const Shape& shape, DType dtype, From from) {
  const Tensor first = values(shape, dtype, 0);
  const Variable v(first);
  const auto f = [&](const Tensor& x) {
    switch (from) {
      case From::variable:
        return make(v);
      case From::captured:
        return make(first);
      case From::computed:
        return make(x * 0.5 + 0.25);
      default:
        return make(x);
    }
  };
  const auto recorded = compile(f);
  for (int call = 0; call < 3; ++call) {
    const Tensor x = values(shape, dtype, call);
    v.assign(values(shape, dtype, call));
    const Tensors wanted = f(x);
    Unchanged all;
    all.add(x, "the argument"), all.add(first, "the captured tensor"), all.add(v, "the variable");
    const Tensors actual = recorded(x);
    const std::string what = "from " + std::to_string(static_cast<int>(from)) + ", " + to_string(x.spec()) +
                             ", call " + std::to_string(call) + ": ";
    if (const std::string d = difference(actual, wanted); !d.empty()) return what + d;
    if (const std::string d = all.changed(); !d.empty()) return what + d;
  }
  return "";
}

/// Faults of many combinations: one failure with the first of them.
class Faults {
 public:
  explicit Faults() = default;
  Faults(const Faults&) = delete;
  ~Faults() {
    ++checks_;
    if (number_ == 0)
      SUCCEED();
    else
      FAIL_CHECK(number_ << " of " << checks_ - 1 << ":" << first_);
  }
  void operator()(const std::string& what, const std::string& fault) {
    ++checks_;
    if (!fault.empty() && ++number_ <= 8) first_ += "\n" + what + ", " + fault;
  }

 private:
  int checks_ = 0, number_ = 0;
  std::string first_;
};

struct View {
  std::int64_t begin, size;
};
Tensor take(const Tensor& x, View v) { return slice(x, {v.begin}, {v.size}); }

/// Views of extent 1 and n of a vector of `all` elements: at its ends, and where they begin together, overlap
/// and meet.
std::vector<View> views(std::int64_t n, std::int64_t all) {
  std::vector<View> list;
  const auto add = [&](std::int64_t begin, std::int64_t size) {
    if (begin < 0 || begin + size > all) return;
    for (const View& v : list)
      if (v.begin == begin && v.size == size) return;
    list.push_back({begin, size});
  };
  for (const std::int64_t begin : {std::int64_t{0}, std::int64_t{1}, n - 1, n, all - n, all - 1}) {
    add(begin, n);
    add(begin, 1);
  }
  add(16, n), add(16, 1);   // on a line
  return list;
}

/// The gradient of the sum of y with respect to x, which `make` makes.
Tensor gradient(const Tensor& x, const std::function<Tensor(const Tensor&)>& make) {
  GradientTape tape;
  tape.watch(x);
  const Gradient g = tape.gradient(sum(make(x)), x);
  return g.defined() ? g.dense() : Tensor();
}

/// What becomes of two views.
using Pair = Tensor (*)(const Tensor&, const Tensor&);
constexpr Pair kPairs[] = {
    [](const Tensor& a, const Tensor& b) { return exp(a - b); },
    [](const Tensor& a, const Tensor& b) { return a * b + a; },
    [](const Tensor& a, const Tensor& b) { return sum(b) + tanh(a) * b; },
    [](const Tensor& a, const Tensor& b) { return sum(a + b) * 2 - sum(a); },
    [](const Tensor& a, const Tensor& b) { return where(a > b, a * a, b) / (1 + square(b)); },
};

}   // namespace

TEST_CASE("any two views of one tensor in a group", "[recorded][aliases]") {
  Faults faults;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : kSizes) {
      const std::int64_t all = 2 * n + 19;
      const std::vector<View> list = views(n, all);
      for (const From from : kFrom)
        for (const View& u : list)
          for (const View& v : list) {
            // By turns: all forms with each pair would take long, and the sizes repeat them.
            const auto way = static_cast<std::size_t>(u.begin + 3 * v.begin + n);
            const Pair pair = kPairs[way % std::size(kPairs)];
            const std::string fault = compare(
                [&](const Tensor& x) { return Tensors{pair(take(x, u), take(x, v))}; }, {all}, dtype, from);
            faults("pair " + std::to_string(way % std::size(kPairs)) + " of [" + std::to_string(u.begin) +
                       ", +" + std::to_string(u.size) + "] and [" + std::to_string(v.begin) + ", +" +
                       std::to_string(v.size) + "]",
                   fault);
          }
    }
}

TEST_CASE("any two views of one tensor, and their gradients", "[recorded][aliases]") {
  Faults faults;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 8, 16, 17, 33, 100}) {
      const std::int64_t all = 2 * n + 3;
      for (const From from : {From::argument, From::variable, From::computed})
        for (std::size_t p = 0; p < std::size(kPairs); ++p) {
          const std::vector<View> list = views(n, all);
          const std::string fault = compare(
              [&](const Tensor& x) {
                Tensors y;
                for (std::size_t i = 0; i + 1 < list.size(); i += 2)
                  y.push_back(gradient(x, [&](const Tensor& t) {
                    return kPairs[p](take(t, list[i]), take(t, list[(i + 1 + p) % list.size()]));
                  }));
                return y;
              },
              {all}, dtype, from);
          faults("pair " + std::to_string(p), fault);
        }
    }
}

TEST_CASE("a view and the whole tensor", "[recorded][aliases]") {
  Faults faults;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : kSizes)
      for (const From from : kFrom) {
        const auto each = [&](const char* name, const Make& make) {
          const std::string fault = compare(make, {n}, dtype, from);
          faults(name, fault);
        };
        each("exp(x - x[0])", [](const Tensor& x) { return Tensors{exp(x - x[0])}; });
        each("exp(x[0] - x)", [](const Tensor& x) { return Tensors{exp(x[0] - x)}; });
        each("exp(x - x[-1])", [](const Tensor& x) { return Tensors{exp(x - x[-1])}; });
        each("sum(x[1] + x)", [&](const Tensor& x) { return Tensors{sum(slice(x, {n / 2}, {1}) + x)}; });
        each("x * x[:1] + x[0] + x[-1]",
             [](const Tensor& x) { return Tensors{x * slice(x, {0}, {1}) + x[0] + x[-1]}; });
        each("gradient of exp(x - x[0])", [](const Tensor& x) {
          return Tensors{gradient(x, [](const Tensor& t) { return exp(t - t[0]); })};
        });
        each("sums of halves", [&](const Tensor& x) {
          const Tensor a = slice(x, {0}, {n / 2}), b = slice(x, {n / 2}, {n - n / 2}),
                       c = slice(x, {0}, {n - n / 2});
          return Tensors{sum(exp(a)), sum(exp(b) * exp(c)), sum(b - c), sum(exp(x)), mean(c)};
        });
      }
}

TEST_CASE("rows, columns and transposes of one matrix", "[recorded][aliases]") {
  Faults faults;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 2, 3, 4, 5, 6, 8, 9, 10})
      for (const From from : kFrom) {
        // All broadcast to [n, n].
        const std::vector<std::function<Tensor(const Tensor&)>> forms = {
            [](const Tensor& m) { return m; },
            [](const Tensor& m) { return transpose(m); },
            [](const Tensor& m) { return m[0]; },
            [](const Tensor& m) { return m[-1]; },
            [n](const Tensor& m) {
              return slice(m, {0, 0}, {1, n});
            },
            [n](const Tensor& m) {
              return slice(m, {0, 0}, {n, 1});
            },
            [n](const Tensor& m) {
              return slice(m, {0, n - 1}, {n, 1});
            },
            [](const Tensor& m) {
              return slice(m, {0, 0}, {1, 1});
            },
            [n](const Tensor& m) {
              return slice(m, {n - 1, n - 1}, {1, 1});
            },
            [](const Tensor& m) {
              return m[{0, 0}];
            },
            [](const Tensor& m) {
              return strided_slice(m, {{{}, {}, -1}});
            },
            [](const Tensor& m) {
              return strided_slice(m, {{}, {{}, {}, -1}});
            },
            [n](const Tensor& m) {
              return reshape(slice(reshape(m, {n * n}), {0}, {n}), {n, 1});
            },
            [n](const Tensor& m) {
              return strided_slice(reshape(m, {n * n}), {{0, {}, n}});
            },
        };
        for (std::size_t i = 0; i < forms.size(); ++i) {
          const std::string fault = compare(
              [&](const Tensor& m) {
                Tensors y;
                for (const auto& form : forms) {
                  const Tensor a = forms[i](m), b = form(m);
                  y.push_back(exp(a * 0.5 - b) + m);
                }
                return y;
              },
              {n, n}, dtype, from);
          faults("form " + std::to_string(i), fault);
          for (std::size_t k = 0; k < forms.size(); ++k) {   // each pair in a program of its own
            const std::string alone =
                compare([&](const Tensor& m) { return Tensors{exp(forms[i](m) - forms[k](m))}; }, {n, n},
                        dtype, from);
            faults("forms " + std::to_string(i) + " and " + std::to_string(k), alone);
          }
        }
      }
}

// A gradient that is an operand itself, as that of a product where the cotangent is ones, and further terms
// that are added to it.
TEST_CASE("gradients with several terms, of which some are arguments", "[recorded][aliases]") {
  Faults faults;
  using Term = Tensor (*)(const Tensor&, const Tensor&);
  constexpr Term terms[] = {
      [](const Tensor& x, const Tensor&) { return sum(x); },
      [](const Tensor& x, const Tensor& y) { return sum(x * y); },
      [](const Tensor& x, const Tensor&) { return sum(x * x); },
      [](const Tensor& x, const Tensor& y) { return sum(x + y); },
      [](const Tensor& x, const Tensor&) { return sum(exp(x)); },
      [](const Tensor& x, const Tensor& y) { return sum(y - x); },
      [](const Tensor& x, const Tensor&) { return mean(x); },
  };
  constexpr int n_terms = static_cast<int>(std::size(terms));
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 8, 15, 16, 17, 18, 32, 33, 64, 100})
      for (int way = 0; way < n_terms * n_terms * n_terms; ++way) {
        const Variable w(values({n}, dtype, 7));
        const Tensor captured = values({n}, dtype, 8);
        const auto f = [&](const Tensor& x, const Tensor& y, bool of_variable) {
          GradientTape tape;
          tape.watch(x), tape.watch(y);
          const Tensor u = of_variable ? w.value() : x, v = way % 2 ? y : captured;
          const Tensor loss = terms[way % n_terms](u, v) + terms[way / n_terms % n_terms](u, v) +
                              terms[way / n_terms / n_terms](u, v);
          Tensors all;
          for (Gradient& g : tape.gradient({loss}, {x, y, w}))
            all.push_back(g.defined() ? std::move(g).dense() : Tensor());
          return all;
        };
        const auto recorded = compile(f);
        for (int call = 0; call < 3; ++call) {
          const Tensor x = values({n}, dtype, call), y = values({n}, dtype, call + 20);
          const bool of_variable = way / 2 % 2;
          const Tensors wanted = f(x, y, of_variable);
          Unchanged all({x, y, captured});
          all.add(w, "the variable");
          const std::string fault = difference(recorded(x, y, of_variable), wanted), changed = all.changed();
          faults(
              "terms " + std::to_string(way) + ", " + to_string(x.spec()) + ", call " + std::to_string(call),
              fault + changed);
        }
      }
}

TEST_CASE("gradients of persistent tapes and of gradients leave their operands", "[recorded][aliases]") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 15, 16, 17, 33, 64, 100})
      for (const From from : {From::argument, From::variable, From::computed}) {
        const std::string fault = compare(
            [](const Tensor& x) {
              GradientTape tape({.persistent = true});
              tape.watch(x);
              const Tensor y = x * x, a = sum(y), b = sum(y) + sum(x), c = sum(y * x) + sum(x);
              const Tensor da = tape.gradient(a, x).dense(), db = tape.gradient(b, x).dense(),
                           dc = tape.gradient(c, x).dense();
              const Tensor dd = tape.gradient(sum(da * dc), x).dense();   // of gradients
              return Tensors{da, db, dc, dd, da + db};
            },
            {n}, dtype, from);
        CHECK(fault == "");
      }
}

TEST_CASE("one tensor as several arguments, then different tensors", "[recorded][aliases]") {
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    GradientTape tape;
    tape.watch(a), tape.watch(b), tape.watch(c);
    const Tensor y = exp(a - b) * c + a, loss = sum(y) + sum(a) + sum(b);
    const auto [da, db, dc] = tape.gradient(loss, a, b, c);
    return Tensors{y, da.dense(), db.dense(), dc.dense()};
  };
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 16, 17, 33, 100}) {
      const Tensor x[] = {values({n}, dtype, 1), values({n}, dtype, 2), values({n}, dtype, 3)};
      for (int first = 0; first < 27; first += 5) {
        const auto recorded = compile(f);
        for (int next = 0; next < 27; ++next) {
          const int way = (first + next) % 27;
          const Tensor &a = x[way % 3], &b = x[way / 3 % 3], &c = x[way / 9];
          const Tensors wanted = f(a, b, c);
          const Unchanged all({a, b, c});
          INFO("first " << first << ", now " << way << ", " << to_string(a.spec()));
          CHECK(difference(recorded(a, b, c), wanted) == "");
          CHECK(all.changed() == "");
        }
      }
    }
}

TEST_CASE("arguments that overlap", "[recorded][aliases]") {
  const auto f = [](const Tensor& a, const Tensor& b) {
    GradientTape tape;
    tape.watch(a);
    const Tensor y = exp(a - b) + a * b;
    return Tensors{y, tape.gradient(sum(y) + sum(a), a).dense(), a, b};
  };
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 8, 16, 17, 33, 65}) {
      const auto recorded = compile(f);
      const std::int64_t all = 2 * n + 19;
      for (int call = 0; call < 3; ++call)
        for (std::int64_t u = 0; u + n <= all; u += 1 + n / 3)
          for (std::int64_t v = 0; v + n <= all; v += 1 + n / 4) {
            const Tensor x = values({all}, dtype, call), a = take(x, {u, n}), b = take(x, {v, n});
            const Tensors wanted = f(a, b);
            const Unchanged held({x, a, b});
            INFO(u << " and " << v << " of " << to_string(x.spec()));
            CHECK(difference(recorded(a, b), wanted) == "");
            CHECK(held.changed() == "");
          }
    }
}

TEST_CASE("results of one call are the arguments of the next", "[recorded][aliases]") {
  const auto f = [](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    tape.watch(x);
    const Tensor z = tanh(x * 1.5) - y * 0.5;
    return Tensors{z, tape.gradient(sum(z * x) + sum(x), x).dense() * 0.25, y, slice(z, {0}, {1}) + x};
  };
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 8, 15, 16, 17, 33, 64, 1000}) {
      const auto recorded = compile(f, {.max_programs = 100});
      Tensors now = {values({n}, dtype, 1), values({n}, dtype, 2)}, eager = now;
      std::vector<Tensors> kept;   // all results stay as they are
      std::vector<Unchanged> copies;
      for (int call = 0; call < 12; ++call) {
        const auto a = static_cast<std::size_t>(call) % now.size(),
                   b = static_cast<std::size_t>(call / 2) % now.size();
        eager = f(eager[a], eager[b]);
        now = recorded(now[a], now[b]);
        INFO("call " << call << ", " << to_string(now[0].spec()));
        CHECK(difference(now, eager) == "");
        kept.push_back(now);
        copies.emplace_back(now, "result");
        for (const Unchanged& u : copies)
          CHECK(u.changed() == "");
      }
    }
}

TEST_CASE("into overwrites every operand", "[recorded][aliases]") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 8, 15, 16, 17, 33, 64, 100, 1000}) {
      INFO(name_of(dtype) << " " << n);
      const Tensor captured = values({n}, dtype, 9);
      const Variable v(values({n}, dtype, 8));
      const auto f = [&](const Tensor& x, const Tensor& y) { return exp(x - y[0]) + captured * v - y; };
      const auto recorded = compile(f);
      const Tensor a = values({n}, dtype, 1), b = values({n}, dtype, 2);
      recorded(a, b), recorded(a, b);

      const auto into = [&](Tensor& result, const Tensor& x, const Tensor& y, Unchanged all) {
        const Tensor wanted = f(x, y);
        all.add(captured, "the captured tensor"), all.add(v, "the variable");
        recorded.into(result, x, y);
        CHECK(difference(result, wanted) == "");
        CHECK(all.changed() == "");
      };
      Tensor r = recorded(a, b);
      into(r, a, b, Unchanged({a, b}));   // what only the caller has
      Tensor copy = r;                    // held elsewhere
      into(r, b, a, Unchanged({a, b, copy}));
      Tensor c = captured;   // the captured tensor itself
      into(c, a, b, Unchanged({a, b}));
      Tensor own = v.value();   // the variable's memory
      into(own, a, b, Unchanged({a, b}));
      Tensor x = identity(a) + 0;   // the argument, of which nobody else knows
      const Tensor wanted = f(x, b), twice = f(wanted, wanted);
      recorded.into(x, x, b);
      CHECK(difference(x, wanted) == "");
      recorded.into(x, x, x);
      CHECK(difference(x, twice) == "");
      Tensor held = a;   // the argument, which is held
      into(held, a, b, Unchanged({a, b}));
      const Tensor longer = values({2 * n + 1}, dtype, 5);
      Tensor part = slice(longer, {1}, {n});   // a view of what is held
      into(part, a, b, Unchanged({a, b, longer}));
      Tensor front = slice(longer, {0}, {n});
      into(front, slice(longer, {n}, {n}), slice(longer, {n + 1}, {n}), Unchanged({a, b, longer}));
      Tensor overlap = slice(recorded(a, b) + 1, {0}, {n});   // a view of all that there is
      into(overlap, a, overlap, Unchanged({a, b}));
      // Both an argument and the base of another one.
      Tensor base = values({n}, dtype, 6) + 0;
      const Tensor seen = slice(base, {0}, {n});
      into(base, base, seen, Unchanged({a, b, seen}));
    }
}

TEST_CASE("into with lists: one tensor in several places", "[recorded][aliases]") {
  const auto f = [](const Tensor& x, const Tensor& y) {
    const Tensor z = exp(x) - y;
    return Tensors{z, x, sum(z), z * 2, z, y};
  };
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 16, 17, 33, 1000}) {
      const auto recorded = compile(f);
      Tensor a = values({n}, dtype, 1), b = values({n}, dtype, 2);
      Tensors r = recorded(a, b);
      for (int call = 0; call < 8; ++call) {
        INFO("call " << call << ", " << to_string(a.spec()));
        if (call % 4 == 1) r[3] = r[0], r[0] = r[4];          // shared within the list
        if (call % 4 == 2) r[0] = a, r[3] = b;                // the arguments
        if (call % 4 == 3) a = r[0], b = r[3], r[1] = r[5];   // results are the arguments
        const Tensors kept = {r[0]}, wanted = f(a, b);
        const Unchanged all({a, b, kept[0]});
        recorded.into(r, a, b);
        CHECK(difference(r, wanted) == "");
        CHECK(all.changed() == "");
      }
      for (int call = 0; call < 4; ++call) {   // whose arguments live in the list alone
        const Tensors wanted = f(r[0], r[3]);
        recorded.into(r, r[0], r[3]);
        CHECK(difference(r, wanted) == "");
      }
    }
}

TEST_CASE("a result may be an argument, a constant, a variable's value, a view, or another result",
          "[recorded][aliases]") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 8, 15, 16, 17, 33, 64, 100}) {
      INFO(name_of(dtype) << " " << n);
      const Tensor captured = values({n}, dtype, 9);
      const Variable v(values({n}, dtype, 8)), w(values({n}, dtype, 7));
      const auto f = [&](const Variable& own, const Tensor& x, const Tensor& y) {
        const Tensor before = own.value(), z = x * y;
        own.assign(before * 0.5 + x);
        return Tensors{x,
                       slice(x, {n / 2}, {n - n / 2}),
                       x[0],
                       x[-1],
                       captured,
                       slice(captured, {0}, {1}),
                       before,
                       slice(before, {n - 1}, {1}),
                       own.value(),
                       z,
                       z,
                       slice(z, {n / 2}, {n - n / 2}),
                       reshape(z, {1, n}),
                       identity(y),
                       stop_gradient(x),
                       zeros_like(x),
                       reshape(x, {n, 1}),
                       y,
                       x};
      };
      const auto recorded = compile(f);
      std::vector<Tensors> kept;
      std::vector<Unchanged> copies;
      for (int call = 0; call < 6; ++call) {
        Tensor x = values({n}, dtype, call), y = values({n}, dtype, call + 10);
        if (call == 4) x = kept.back()[9], y = kept.back()[0];
        if (call == 5) x = take(values({n + 3}, dtype, 4), {1, n});
        w.assign(v.value());   // f itself works with the other variable
        const Tensors wanted = f(w, x, y);
        Unchanged all({x, y, captured});
        kept.push_back(recorded(v, x, y));
        INFO("call " << call);
        CHECK(difference(kept.back(), wanted) == "");
        CHECK(difference(v.value(), w.value()) == "");
        CHECK(all.changed() == "");
        copies.emplace_back(kept.back(), "result");
        for (const Unchanged& u : copies)
          CHECK(u.changed() == "");
        // What is assigned elsewhere changes no result.
        v.assign(v.value() * 1.5);
        CHECK(copies.back().changed() == "");
      }
    }
}

TEST_CASE("into may reuse a result that was a variable's value", "[recorded][aliases]") {
  for (const std::int64_t n : {1, 16, 17, 1000}) {
    const Variable v(values({n}, DType::f32, 1));
    const auto f = compile([&](const Tensor& x) {
      v.assign(x * 2);
      return v.value();
    });
    Tensor r = f(values({n}, DType::f32, 2));
    for (int call = 3; call < 8; ++call) {
      const Tensor x = values({n}, DType::f32, call);
      f.into(r, x);
      CHECK(difference(r, x * 2) == "");
      CHECK(difference(v.value(), x * 2) == "");
      v.assign(x);   // in place, if it were not shared
      CHECK(difference(r, x * 2) == "");
      r = {};
      r = f(x);
    }
  }
}
