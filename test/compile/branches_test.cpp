// Branches of recorded functions: values, gradients of any order, both modes, captures, effects, errors.
#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <utility>

#include "closeness.h"
#include "tapedeck/compile.h"
#include "tapedeck/tapedeck.h"

namespace branches_test {

using namespace tapedeck;

namespace {

using Tensors = std::vector<Tensor>;
using Values = std::vector<double>;

Tensor number(double x) { return tensor(x, DType::f64); }
Tensor vector(const Values& x) { return tensor(std::span(x), {static_cast<std::int64_t>(x.size())}); }
Tensor flag(bool p) { return tensor(p ? 1 : 0, DType::boolean); }

void check_same(const Tensors& a, const Tensors& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    REQUIRE(a[i].defined() == b[i].defined());
    if (a[i].defined()) CHECK(same_bits(a[i], b[i]));
  }
}
/// Checks the elements of all tensors, one after another.
void check_close(const Tensors& y, const Values& wanted) {
  Values all;
  for (const Tensor& t : y)
    for (const double v : t.to_vector())
      all.push_back(v);
  REQUIRE(all.size() == wanted.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    CHECK(all[i] == Approx(wanted[i]).epsilon(1e-12).margin(1e-12));
  }
}

/// A function that runs eagerly and recorded. Each call runs it eagerly, then recorded twice, the second time
/// as a replay, always from the same values of these variables. Results and variables must have the same
/// bits.
template <class F> class Both {
 public:
  explicit Both(F f, std::vector<Variable> variables = {})
      : f_(f), recorded_(compile(f)), variables_(std::move(variables)) {}

  template <class... X> Tensors operator()(const X&... x) const {
    const Tensors before = values();
    auto eager = f_(x...);
    const Tensors wanted = detail::tensors_of(eager), after = values();
    for (const bool is_replay : {false, true}) {
      for (std::size_t i = 0; i < before.size(); ++i)
        variables_[i].assign(before[i]);
      const std::int64_t replays = calls();
      auto y = recorded_(x...);
      if (is_replay) CHECK(calls() == replays + 1);
      check_same(detail::tensors_of(y), wanted);
      check_same(values(), after);
    }
    return wanted;
  }
  const Compiled<F>& recorded() const { return recorded_; }
  std::size_t programs() const { return recorded_.programs().size(); }

 private:
  Tensors values() const { return {variables_.begin(), variables_.end()}; }
  std::int64_t calls() const {
    std::int64_t n = 0;
    for (const ProgramInfo& p : recorded_.programs())
      n += p.calls;
    return n;
  }

  F f_;
  Compiled<F> recorded_;
  std::vector<Variable> variables_;
};

// One type for all functions of a signature, since each takes the compiler long.
template <class F> Both(F, std::vector<Variable> = {}) -> Both<decltype(std::function(std::declval<F>()))>;

/// The values of the tensors of f(p, x, y), and the gradients of their sum with respect to x and y.
template <class F> auto with_gradients(F f) {
  return [f](const Tensor& p, const Tensor& x, const Tensor& y) {
    GradientTape tape;
    tape.watch(x, y);
    auto structure = f(p, x, y);
    Tensors z = detail::tensors_of(structure);
    const auto [dx, dy] = tape.gradient(z, x, y);
    z.insert(z.end(), {dx, dy});
    return z;
  };
}
/// Checks what with_gradients returns for both conditions, at x and y, with one program; and the same with a
/// tape around the recorded f.
template <class F> void check_both_branches(F f, double x, double y, const Values& yes, const Values& no) {
  const Both inside(with_gradients(f));
  const auto alone = compile(f);
  const auto outside = with_gradients(alone);
  alone(flag(true), number(x), number(y));
  for (const bool p : {true, false, true}) {
    CAPTURE(p);
    check_close(inside(flag(p), number(x), number(y)), p ? yes : no);
    check_close(outside(flag(p), number(x), number(y)), p ? yes : no);
  }
  CHECK(inside.programs() == 1);
}

/// The number of results of the first branch of a program, by its line of the summary.
template <class F> std::ptrdiff_t results_of_branch(const F& f) {
  const std::string text = f.summary(), line = text.substr(text.find("branch "));
  const std::size_t end = line.find_last_not_of(' ', line.rfind(' ', line.find('\n')));
  const std::string all = line.substr(0, end + 1), outputs = all.substr(all.rfind("  "));
  return std::count(outputs.begin(), outputs.end(), '[');
}

/// d/dx of the sum of f at x, by a tape of its own, so that calls nest.
template <class F> Tensor derivative(const F& f, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(f(x), x).dense();
}
/// f and its first `order` derivatives at x.
template <int order, class F> Tensors derivatives(const F& f, const Tensor& x) {
  Tensors all = {f(x)};
  if constexpr (order > 0)
    for (const Tensor& t : derivatives<order - 1>([&](const Tensor& u) { return derivative(f, u); }, x))
      all.push_back(t);
  return all;
}

const auto twice_product = [](const Tensor& a, const Tensor& b) { return 2 * a * b; };

}   // namespace

TEST_CASE("cond2-basic-recorded, cond2-basic-outside-tape: both branches of one program",
          "[recorded][branches]") {
  check_both_branches(
      [](const Tensor& p, const Tensor& x, const Tensor& y) {
        return cond(
            p, {x, y}, [](const Tensor& a, const Tensor&) { return 2 * a; },
            [](const Tensor&, const Tensor& b) { return 3 * b; });
      },
      1, 2, {2, 2, 0}, {6, 0, 3});
}

TEST_CASE("cond2-two-outputs-output-0, cond2-two-outputs-output-1: gradients of one output",
          "[recorded][branches]") {
  const auto pair = [](const Tensor& p, const Tensor& x, const Tensor& y) {
    return cond(
        p, {x, y}, [](const Tensor& a, const Tensor& b) { return std::pair(a * b, b); },
        [](const Tensor& a, const Tensor& b) { return std::pair(a, 3 * b); });
  };
  check_both_branches([&](const auto&... x) { return pair(x...).first; }, 1, 3, {3, 3, 1}, {1, 1, 0});
  check_both_branches([&](const auto&... x) { return pair(x...).second; }, 1, 3, {3, 0, 1}, {9, 0, 3});
  check_both_branches(pair, 1, 3, {3, 3, 3, 2}, {1, 9, 1, 3});
}

TEST_CASE("cond2-branch-constant: a branch without operands", "[recorded][branches]") {
  check_both_branches(
      [](const Tensor& p, const Tensor& x, const Tensor& y) {
        return cond(p, {x, y}, twice_product, [](const Tensor&, const Tensor&) { return number(2); });
      },
      1, 2, {4, 4, 2}, {2, 0, 0});
}

TEST_CASE("cond2-no-operands: numbers of both branches", "[recorded][branches]") {
  const Both f([](const Tensor& p) {
    return cond(
        p, {}, [] { return number(1); }, [] { return number(2); });
  });
  check_close(f(flag(true)), {1});
  check_close(f(flag(false)), {2});
  CHECK(f.programs() == 1);
}

TEST_CASE("cond2-function-in-branch, cond2-function-in-false-branch: compiled functions in branches",
          "[recorded][branches]") {
  const auto two = [](const Tensor&, const Tensor&) { return number(2); };
  const auto g = compile(twice_product);
  const auto h = compile([&](const Tensor& a, const Tensor& b) { return g(a, b); });
  check_both_branches(
      [&](const Tensor& p, const Tensor& x, const Tensor& y) {
        return cond(p, {x, y}, g, two);
      },
      1, 2, {4, 4, 2}, {2, 0, 0});
  check_both_branches(
      [&](const Tensor& p, const Tensor& x, const Tensor& y) {
        return cond(p, {x, y}, two, h);
      },
      1, 2, {2, 0, 0}, {4, 4, 2});
}

TEST_CASE("cond2-nested-same-predicate, cond2-nested-in-both: conditions in branches",
          "[recorded][branches]") {
  check_both_branches(
      [](const Tensor& p, const Tensor& x, const Tensor& y) {
        return cond(
            p, {x, y}, [](const Tensor&, const Tensor&) { return number(2); },
            [&](const Tensor& a, const Tensor& b) {
              return cond(p, {a, b}, twice_product, [](const Tensor& u, const Tensor&) { return 5 * u; });
            });
      },
      1, 2, {2, 0, 0}, {5, 5, 0});
  check_both_branches(
      [](const Tensor& p, const Tensor& x, const Tensor& y) {
        return cond(
            p, {x, y},
            [&](const Tensor& a, const Tensor& b) {
              return cond(
                  p, {a, b}, [](const Tensor& u, const Tensor& v) { return u + v; },
                  [](const Tensor& u, const Tensor&) { return u * u; });
            },
            [&](const Tensor& a, const Tensor& b) {
              return cond(
                  p, {a, b}, [](const Tensor& u, const Tensor& v) { return u - v; },
                  [](const Tensor&, const Tensor& v) { return v * v; });
            });
      },
      1, 2, {3, 1, 1}, {4, 0, 4});
}

TEST_CASE("cond2-nested3-001: three conditions, eight paths of one program", "[recorded][branches]") {
  const Both f([](const Tensor& p, const Tensor& p1, const Tensor& p2, const Tensor& x, const Tensor& y) {
    return with_gradients([&](const Tensor&, const Tensor&, const Tensor&) {
      return cond(
          p, {x, y}, [](const Tensor&, const Tensor&) { return number(2); },
          [&](const Tensor& a, const Tensor& b) {
            return cond(
                p2, {a, b},
                [&](const Tensor& u, const Tensor& v) {
                  return cond(p1, {u, v}, twice_product,
                              [](const Tensor& s, const Tensor&) { return 10 * s; });
                },
                [](const Tensor& u, const Tensor&) { return 5 * u; });
          });
    })(p, x, y);
  });
  for (int i = 0; i < 8; ++i) {
    const bool p = i & 4, p1 = i & 2, p2 = i & 1;
    CAPTURE(p, p1, p2);
    const Values wanted = p     ? Values{2, 0, 0}
                          : !p2 ? Values{5, 5, 0}
                          : p1  ? Values{4, 4, 2}
                                : Values{10, 10, 0};
    check_close(f(flag(p), flag(p1), flag(p2), number(1), number(2)), wanted);
  }
  CHECK(f.programs() == 1);
}

TEST_CASE("cond2-derivatives-to-third, cond2-second-derivative-mixed-tapes: derivatives of higher order",
          "[recorded][branches]") {
  const auto cube = [](const Tensor& p, const Tensor& x) {
    return cond(
        p, {x}, [](const Tensor& a) { return a * a * a; }, [](const Tensor& a) { return a; });
  };
  const Both f([&](const Tensor& p, const Tensor& x) {
    return derivatives<3>([&](const Tensor& t) { return cube(p, t); }, x);
  });
  check_close(f(flag(true), number(3)), {27, 27, 18, 6});
  check_close(f(flag(false), number(3)), {3, 1, 0, 0});
  CHECK(f.programs() == 1);

  const auto first = compile([&](const Tensor& p, const Tensor& x) {
    return derivative([&](const Tensor& t) { return cube(p, t); }, x);
  });
  for (const bool p : {true, false}) {
    first(flag(p), number(3));
    check_close({derivative([&](const Tensor& x) { return first(flag(p), x); }, number(3))}, {p ? 18.0 : 0});
  }
}

TEST_CASE("cond2-iterated-cos: four derivatives", "[recorded][branches]") {
  const Both f([](const Tensor& p, const Tensor& x) {
    return derivatives<4>(
        [&](const Tensor& t) {
          return cond(
              p, {t}, [](const Tensor& u) { return cos(identity(u)); },
              [](const Tensor& u) { return sin(identity(u)); });
        },
        x);
  });
  const double c = std::cos(1.0), s = std::sin(1.0);
  check_close(f(flag(true), number(1)), {c, -s, -c, s, c});
  check_close(f(flag(false), number(1)), {s, c, -s, -c, s});
  CHECK(f.programs() == 1);
}

TEST_CASE("cond2-two-conds-one-used, cond2-branch-is-recorded-function: a result that is not read",
          "[recorded][branches]") {
  const auto g = compile([] { return number(3); });
  const Both f([&](const Tensor& yes, const Tensor& no) {
    const auto zero = [] { return number(0); };
    const auto one = [] { return number(1); };
    cond(yes, {}, zero, one);
    return cond(no, {}, zero, one);
  });
  check_close(f(flag(true), flag(false)), {1});
  const Both h([&](const Tensor& yes) {
    cond(
        yes, {}, [] { return number(1); }, [] { return number(2); });
    return cond(yes, {}, g, [] { return number(4); });
  });
  check_close(h(flag(true)), {3});
  check_close(h(flag(false)), {4});
}

TEST_CASE("cond2-effects-keep-order: assignments in branches", "[recorded][branches]") {
  const Variable v(number(1));
  const Both f(
      [&](const Tensor& yes, const Tensor& p) {
        cond(
            yes, {}, [&] { return v.assign(v + 1), Tensors(); }, [] { return Tensors(); });
        cond(
            p, {}, [&] { return v.assign(3 * v), Tensors(); }, [&] { return v.assign(v - 5), Tensors(); });
        return v.value();
      },
      {v});
  check_close(f(flag(true), flag(true)), {6});
  check_close(f(flag(true), flag(false)), {2});
  check_close(f(flag(true), flag(true)), {9});
  check_close({v.value()}, {9});
  CHECK(f.programs() == 1);
}

TEST_CASE("cond2-assign-before-cond: a branch sees the assigned value", "[recorded][branches]") {
  const Variable v(number(1));
  const Both f(
      [&](const Tensor& p) {
        v.assign(v + 1);
        return cond(
            p, {}, [] { return number(1); }, [&] { return v.value(); });
      },
      {v});
  check_close(f(flag(false)), {2});
  check_close({v.value()}, {2});
  check_close(f(flag(true)), {1});
  check_close({v.value()}, {3});
}

TEST_CASE("cond2-error-structure, cond2-error-shape: branches that do not match",
          "[recorded][branches][errors]") {
  const auto f = compile([](const Tensor& p, const Tensor& x, const Tensor& y) {
    return cond(
        p, {x, y},
        [](const Tensor& a, const Tensor& b) {
          return Tensors{a * b, b};
        },
        [](const Tensor& a, const Tensor&) { return Tensors{a}; });
  });
  const auto g = compile([](const Tensor& p) {
    return cond(
        p, {}, [] { return ones({1}); }, [] { return tensor(1.0); });
  });
  const auto h = compile([](const Tensor& p) {
    return cond(
        p, {}, [] { return tensor(1.0); }, [] { return tensor(1); });
  });
  for (const bool p : {true, false}) {
    CHECK_THROWS_WITH(f(flag(p), number(1), number(3)), Catch::Contains("cond"));
    CHECK_THROWS_AS(f(flag(p), number(1), number(3)), ArgumentError);
    CHECK_THROWS_WITH(g(flag(p)), Catch::Contains("cond"));
    CHECK_THROWS_AS(g(flag(p)), ShapeError);
    CHECK_THROWS_AS(h(flag(p)), DTypeError);
  }
}

TEST_CASE("cond2-in-loop-writes-list, cond2-in-loop-recorded: a condition in a loop",
          "[recorded][branches]") {
  const auto squares = [](const Tensor& x) {
    return while_loop(
               [](const Tensor& i, const Tensor&) { return i < 10; },
               [&](const Tensor& i, const Tensor& list) {
                 const Tensor at = gather(x, i);
                 const Tensor y = cond(
                     at > 0, {at}, [](const Tensor& a) { return a * a; }, [](const Tensor& a) { return a; });
                 return std::pair(i + 1, tensor_scatter_update(list, reshape(i, {1, 1}), reshape(y, {1})));
               },
               {tensor(0, DType::i64), zeros({10}, DType::i64)})
        .second;
  };
  const auto integers = [](const std::vector<std::int64_t>& x) { return astype(tensor(x), DType::i64); };
  const Tensor first = integers({-5, -4, -3, -2, -1, 0, 1, 2, 3, 4});
  const Both constant([&] { return squares(first); });
  check_close(constant(), {-5, -4, -3, -2, -1, 0, 1, 4, 9, 16});
  const Both f(squares);
  check_close(f(first), {-5, -4, -3, -2, -1, 0, 1, 4, 9, 16});
  check_close(f(integers({3, -3, 2, -2, 1, -1, 0, 5, -5, 4})), {9, -3, 4, -2, 1, -1, 0, 25, -5, 16});
  CHECK(f.programs() == 1);
}

TEST_CASE("cond2-undefined-outputs: none and slices as outputs of branches", "[recorded][branches]") {
  const Both f([](const Tensor& p, const Tensor& x) {
    const auto branch = [](double by) {
      return [by](const Tensor& a) {
        return std::vector<Gradient>{{}, {}, {}, IndexedSlices{by * a, tensor({0}), Shape{1}}};
      };
    };
    return cond(p, {x}, branch(1), branch(2));
  });
  for (const bool p : {true, false}) {
    const Tensors y = f(flag(p), vector({1}));
    REQUIRE(y.size() == 4);
    CHECK((!y[0].defined() && !y[1].defined() && !y[2].defined()));
    check_close({y[3]}, {p ? 1.0 : 2});
  }
}

TEST_CASE("cond2-captured-matrix-rows2: a captured variable, arguments of several shapes",
          "[recorded][branches]") {
  const Variable v(ones({2, 2}, DType::f64));
  const auto product = compile([&](const Tensor& x) { return matmul(x, v); });
  const auto same = compile([](const Tensor& x) { return x; });
  const auto choice = [&](const Tensor& x, const Tensor& c) { return cond(c > 0, {x}, product, same); };
  const Both f([&](const Tensor& x, const Tensor& c) {
    GradientTape tape;
    return tape.gradient(sum(choice(x, c)), v, {.unconnected = UnconnectedGradients::zero});
  });
  const auto g = compile(choice);
  for (const int rows : {2, 3, 2, 1}) {
    const Tensor x = ones({rows, 2}, DType::f64);
    check_close(f(x, number(1)), Values(4, rows));
    check_close(f(x, number(-1)), Values(4, 0));
    g(x, number(1));
    GradientTape tape;
    check_close({tape.gradient(sum(g(x, number(1))), v)}, Values(4, rows));
  }
  CHECK(f.programs() == 3);
}

TEST_CASE("cond2-switch-index-0: an index that is an argument", "[recorded][branches]") {
  for (const DType dtype : {DType::i32, DType::i64}) {
    const Both f([](const Tensor& i, const Tensor& x) {
      return switch_case(
          i, {x}, [](const Tensor& a) { return a; }, [](const Tensor& a) { return a + 1; });
    });
    const Tensor one = tensor(1);
    for (const int i : {1, 0, 5, -1})
      check_close(f(tensor(i, dtype), one), {i == 0 ? 1.0 : 2});
    CHECK(f.programs() == 1);
  }
}

TEST_CASE("cond2-jax-three-operands: one tensor as three operands", "[recorded][branches]") {
  const Both f([](const Tensor& x) {
    return derivatives<2>(
        [](const Tensor& t) {
          return cond(
              equal(t, 0), {t, t, t},
              [](const Tensor& a, const Tensor& b, const Tensor& c) { return a + b + c; },
              [](const Tensor& a, const Tensor& b, const Tensor& c) { return a * b * c; });
        },
        x);
  });
  check_close(f(number(0)), {0, 3, 0});
  check_close(f(number(1)), {1, 3, 6});
  check_close(f(number(3)), {27, 27, 18});
  CHECK(f.programs() == 1);
}

TEST_CASE("cond2-jax-nested-operand: integers", "[recorded][branches]") {
  const Both f([](const Tensor& x) {
    return cond(
        x < 2, {x}, [](const Tensor& a) { return 2 * a; },
        [](const Tensor& a) {
          return cond(
              a < 5, {a}, [](const Tensor& b) { return 3 * b; }, [](const Tensor& b) { return 4 * b; });
        });
  });
  check_close(f(tensor(1)), {2});
  check_close(f(tensor(3)), {9});
  check_close(f(tensor(6)), {24});
  CHECK(f.programs() == 1);
}

TEST_CASE("cond2-jax-constant-branch: three constants, or one of them the operand", "[recorded][branches]") {
  const Both f([](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    Tensors y = cond(
        x < 3, {x},
        [](const Tensor&) {
          return Tensors{number(1), number(2), number(3)};
        },
        [](const Tensor& a) {
          return Tensors{a, number(2), number(4)};
        });
    y.push_back(tape.gradient(y[0] + y[1] + y[2], x));
    return y;
  });
  check_close(f(number(0)), {1, 2, 3, 0});
  check_close(f(number(4)), {4, 2, 4, 1});
}

TEST_CASE("cond2-switch-jvp, cond2-switch-grad: an index that is computed", "[recorded][branches]") {
  const auto index = [](const Tensor& x) { return astype(clip(floor(x), 0, 2), DType::i32); };
  const auto pairs = [&](const Tensor& x) {
    return switch_case(
        index(x), {x}, [](const Tensor& a) { return std::pair(a, a); },
        [](const Tensor& a) { return std::pair(2 * a, 4 * a); },
        [](const Tensor& a) { return std::pair(a, -a); });
  };
  const auto tangents = [](const auto& f) {
    return [&f](const Tensor& x) {
      const ForwardAccumulator forward(x, x);
      const auto [a, b] = f(x);
      return Tensors{a, b, forward.jvp(a), forward.jvp(b)};
    };
  };
  const Both jvp(tangents(pairs));
  const auto alone = compile(pairs);
  for (const auto& [x, a, b] :
       {std::array{-0.7, -0.7, -0.7}, {0.7, 0.7, 0.7}, {1.7, 3.4, 6.8}, {2.7, 2.7, -2.7}, {3.7, 3.7, -3.7}}) {
    CAPTURE(x);
    alone(number(x));
    check_close(jvp(number(x)), {a, b, a, b});
    check_close(tangents(alone)(number(x)), {a, b, a, b});
  }
  CHECK(jvp.programs() == 1);

  const Both f([&](const Tensor& x) {
    return derivatives<2>(
        [&](const Tensor& t) {
          return switch_case(
              index(t), {t}, [](const Tensor& a) { return 3 * a; }, [](const Tensor& a) { return sin(a); },
              [](const Tensor& a) { return -a; });
        },
        x);
  });
  check_close(f(number(-0.7)), {-2.1, 3, 0});
  check_close(f(number(0.7)), {2.1, 3, 0});
  check_close(f(number(1.7)), {std::sin(1.7), std::cos(1.7), -std::sin(1.7)});
  check_close(f(number(2.7)), {-2.7, -1, 0});
  check_close(f(number(3.7)), {-3.7, -1, 0});
  CHECK(f.programs() == 1);
}

TEST_CASE("cond2-switch-forwarding-1-1, cond2-switch-forwarding-1-3: an output is an operand",
          "[recorded][branches]") {
  const Both f([](const Tensor& i, const Tensor& a, const Tensor& b, const Tensor& c) {
    using F = std::function<Tensors(const Tensor&, const Tensor&, const Tensor&)>;
    std::vector<F> branches;
    for (int s = 0; s < 4; ++s) {
      const auto outputs = [s](const Tensor& u, const Tensor& v) { return Tensors{s * exp(u), sin(v), u}; };
      if (s == 2)
        branches.push_back([=](const Tensor& x, const Tensor& y, const Tensor&) { return outputs(x, y); });
      else
        branches.push_back([=](const Tensor&, const Tensor& x, const Tensor& y) { return outputs(x, y); });
    }
    GradientTape tape;
    tape.watch(a, b, c);
    Tensors y = switch_case(i, {a, b, c}, branches);
    for (const Gradient& g : tape.gradient(y, a, b, c))
      y.push_back(g.dense());
    return y;
  });
  const auto at = [&](int i) { return f(tensor(i), number(0.5), number(-1), number(0.25)); };
  const double e = std::exp(-1), s = std::sin(0.25), c = std::cos(0.25);
  check_close(at(1), {e, s, -1, 0, e + 1, c});
  check_close(at(3), {3 * e, s, -1, 0, 3 * e + 1, c});
  check_close(at(0), {0, s, -1, 0, 1, c});
  check_close(at(2), {2 * std::exp(0.5), std::sin(-1), 0.5, 2 * std::exp(0.5) + 1, std::cos(1), 0});
  CHECK(f.programs() == 1);
}

TEST_CASE("cond2-vector-2.14, cond2-vector-1.72: branches that are recomputed", "[recorded][branches]") {
  const auto scaled = [](const Tensor& a) { return vector({1, 2}) * a; };
  const auto check = [&](const auto& first, const auto& second) {
    const Both f([&](const Tensor& x) {
      GradientTape tape;
      tape.watch(x);
      const Tensor y = cond(x[0] < 2, {x}, first, second);
      return Tensors{y, tape.gradient(sum(y), x)};
    });
    check_close(f(vector({2.14, 2.14})), {std::sin(2.14), std::sin(2.14), std::cos(2.14), std::cos(2.14)});
    check_close(f(vector({1.72, 1.72})), {1.72, 3.44, 1, 2});
    CHECK(f.programs() == 1);
  };
  const auto sine = [](const Tensor& a) { return sin(a); };
  check(scaled, sine);
  check(recompute_grad(scaled), recompute_grad(sine));
}

TEST_CASE("cond2-captured-other-operand: a tensor that one branch captures", "[recorded][branches]") {
  const Both f([](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    tape.watch(x, y);
    const Tensor z = cond(
        x < 3, {x}, [&](const Tensor&) { return 2 * sin(y); }, [](const Tensor& a) { return 2 * a; });
    // Eager, a tensor that the branch does not capture has no gradient.
    auto gradients = tape.gradient(z, std::pair(x, y), {.unconnected = UnconnectedGradients::zero});
    return Tensors{z, gradients.first, gradients.second};
  });
  check_close(f(number(3.14), number(5.8)), {6.28, 2, 0});
  check_close(f(number(2.72), number(5.8)), {2 * std::sin(5.8), 0, 2 * std::cos(5.8)});
  CHECK(f.programs() == 1);
}

TEST_CASE("cond2-constants-in-branches-1: constants of branches", "[recorded][branches]") {
  const Both f([](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = cond(
        x < 2, {x},
        [](const Tensor& a) {
          return vector({1, 2}) * a;
        },
        [](const Tensor& a) {
          return vector({3, 4}) * sin(a);
        });
    return Tensors{y, tape.gradient(sum(y), x)};
  });
  check_close(f(number(1)), {1, 2, 3});
  check_close(f(number(2.5)), {3 * std::sin(2.5), 4 * std::sin(2.5), 7 * std::cos(2.5)});
  CHECK(f.programs() == 1);
}

TEST_CASE("cond2-nan-in-other-branch: the other branch contributes nothing", "[recorded][branches]") {
  const Both f([](const Tensor& x) {
    return derivatives<1>(
        [](const Tensor& t) {
          return cond(
              t < 0.001, {t}, [](const Tensor&) { return number(0.001); },
              [](const Tensor& a) { return sqrt(a); });
        },
        x);
  });
  check_close(f(number(4)), {2, 0.25});
  check_close(f(number(0)), {0.001, 0});
  CHECK(f.programs() == 1);
}

TEST_CASE("cond2-hessian-of-vector-cond: Hessians of both branches", "[recorded][branches]") {
  const auto f = [](const Tensor& x) {
    return cond(
        sum(x) > 0, {x}, [](const Tensor& a) { return a[0] * a[0] * a[1]; },
        [](const Tensor& a) { return a[0] * pow(a[1], 3); });
  };
  for (const bool vectorize : {true, false}) {
    const Both hessians([&](const Tensor& x) { return hessian(f, x, {.vectorize = vectorize}); });
    check_close(hessians(vector({1, 2})), {4, 2, 2, 0});
    check_close(hessians(vector({-1, -2})), {0, 12, 12, 12});
    CHECK(hessians.programs() == 1);
  }
}

TEST_CASE("cond2-vjp-constant-other-branch: the other branch is the operand or a constant",
          "[recorded][branches]") {
  const auto sine = [](const Tensor& a) { return sin(a); };
  const Both f([&](const Tensor& p, const Tensor& x) {
    return derivative([&](const Tensor& t) { return cond(p, {t}, sine, [](const Tensor& a) { return a; }); },
                      x);
  });
  const Both g([&](const Tensor& p, const Tensor& x) {
    return derivative(
        [&](const Tensor& t) { return cond(p, {t}, sine, [](const Tensor&) { return number(1); }); }, x);
  });
  check_close(f(flag(true), number(1)), {std::cos(1)});
  check_close(f(flag(false), number(1)), {1});
  check_close(g(flag(true), number(1)), {std::cos(1)});
  check_close(g(flag(false), number(1)), {0});
}

TEST_CASE("cond2-custom-rule-with-constant: a user's derivative in a branch", "[recorded][branches]") {
  const Tensor by = vector({0, 1, 2});
  const auto custom = custom_gradient(
      [&](const Tensor& x) { return std::pair(identity(x), [&](const Tensor& dy) { return dy * by; }); });
  const auto choice = [&](const Tensor& p, const Tensor& x) {
    return cond(p, {x}, custom, [](const Tensor& a) { return identity(a); });
  };
  const Both f([&](const Tensor& p, const Tensor& x) {
    const ForwardAccumulator forward(x, x);
    return forward.jvp(choice(p, x)).dense();
  });
  const Both g([&](const Tensor& p, const Tensor& x) {
    return derivative([&](const Tensor& t) { return sum(choice(p, t) * x); }, identity(x));
  });
  check_close(f(flag(true), by), {0, 1, 4});
  check_close(f(flag(false), by), {0, 1, 2});
  check_close(g(flag(true), by), {0, 1, 4});
  check_close(g(flag(false), by), {0, 1, 2});
}

TEST_CASE("cond2-intermediates-are-outputs-once, cond2-residual-slots-are-shared: what branches keep",
          "[recorded][branches]") {
  const auto choice = [](const Tensor& p, const Tensor& x, const Tensor& y) {
    return cond(
        p, {x, y}, [](const Tensor& a, const Tensor& b) { return a * (b + 1); },
        [](const Tensor& a, const Tensor&) { return a; });
  };
  const auto derivatives_at = [&](int gradients) {
    return [=](const Tensor& p, const Tensor& x, const Tensor& y) {
      GradientTape tape({.persistent = true});
      tape.watch(x);
      Tensors all = {choice(p, x, y)};
      tape.stop();
      for (int i = 0; i < gradients; ++i)
        all.push_back(tape.gradient(all[0], x));
      return all;
    };
  };
  const Both alone(choice);
  const Both once(derivatives_at(1)), twice(derivatives_at(2));
  check_close(alone(flag(true), number(1), number(1)), {2});
  check_close(once(flag(true), number(1), number(1)), {2, 2});
  check_close(twice(flag(true), number(1), number(1)), {2, 2, 2});
  check_close(twice(flag(false), number(1), number(1)), {1, 1, 1});
  CHECK(results_of_branch(alone.recorded()) == 1);
  CHECK(results_of_branch(once.recorded()) == 2);
  CHECK(results_of_branch(twice.recorded()) == 2);
  CHECK(twice.recorded().programs()[0].nodes == 3);   // one branch forward, and two gradients

  const std::vector<std::function<Tensor(const Tensor&)>> all = {
      [](const Tensor& x) { return sin(x); }, [](const Tensor& x) { return cos(x); },
      [](const Tensor& x) { return sinh(x); }, [](const Tensor& x) { return sin(x) + cos(x); }};
  const double s = std::sin(0.8), c = std::cos(0.8);
  for (const int n : {2, 3, 4}) {
    const Both f([&](const Tensor& i, const Tensor& x) {
      return derivative(
          [&](const Tensor& t) { return switch_case(i, {t}, std::vector(all.begin(), all.begin() + n)); }, x);
    });
    for (int i = 0; i < n; ++i)
      check_close(f(tensor(i), number(0.8)), {std::array{c, -s, std::cosh(0.8), c - s}[std::size_t(i)]});
    CHECK(results_of_branch(f.recorded()) <= 1 + (n == 4 ? 2 : 1));
  }
}

TEST_CASE("funcgrad-implicit-in-function, funcgrad-twice, funcgrad-shape-of-gradient: a variable",
          "[recorded][branches]") {
  const Variable v(number(1));
  const Both step([&] {
    GradientTape tape;
    return tape.gradient(v * v, v);
  });
  check_close(step(), {2});
  v.assign(number(4));
  check_close(step(), {8});

  v.assign(number(1));
  const auto square = compile([&] { return v * v; });
  const auto twice = compile([&] { return 2 * v; });
  for (int i = 0; i < 2; ++i) {
    square();
    GradientTape tape;
    check_close({tape.gradient(square(), v)}, {2});
  }
  twice();
  GradientTape tape;
  CHECK(same_bits(tape.gradient(twice(), v), number(2)));
}

TEST_CASE(
    "funcgrad-cos-order-0, funcgrad-cos-order-4, funcgrad-iterated-one-persistent-tape, "
    "funcgrad-iterated-persistent-variable: derivatives of a recorded cosine",
    "[recorded][branches]") {
  const double c = std::cos(1.0), s = std::sin(1.0);
  const auto g = compile([](const Tensor& x) { return cos(x); });
  const Both f([&](const Tensor& x) { return derivatives<4>(g, x); });
  check_close(f(number(1)), {c, -s, -c, s, c});

  const Tensor x = number(1);
  const Variable v(x);
  const auto h = compile([&] { return cos(v); });
  g(x), h();
  Recording tape;   // persistent
  Tensor y = g(x), z = h();
  for (const double wanted : {c, -s, -c, s, c}) {
    check_close({y, z}, {wanted, wanted});
    y = tape.gradient(y, x), z = tape.gradient(z, v);
  }
}

TEST_CASE("funcgrad-output-gradient-is-differentiable: the output gradient as a source",
          "[recorded][branches]") {
  const auto f = compile([](const Tensor& x) { return cos(x); });
  const auto both = [&](const Tensor& x, const Tensor& d) {
    GradientTape outer;
    outer.watch(d);
    GradientTape tape;
    tape.watch(x);
    const Tensor g = tape.gradient(f(x), x, {.output_gradients = {d}});
    return Tensors{g, outer.gradient(g, d)};
  };
  f(number(1));
  check_close(both(number(1), number(2)), {-2 * std::sin(1), -std::sin(1)});
  check_close(Both(both)(number(1), number(2)), {-2 * std::sin(1), -std::sin(1)});
}

TEST_CASE("funcgrad-gather-is-sparse: slices as a result", "[recorded][branches]") {
  const auto row = compile([](const Tensor& x) { return gather(x, tensor({0}))[0][0]; });
  const auto f = compile([&](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(row(x), x);
  });
  for (int i = 0; i < 2; ++i) {
    const Gradient g = f(reshape(number(2), {1, 1}));
    REQUIRE(g.slices());
    CHECK(same_bits(g.slices()->values, ones({1, 1}, DType::f64)));
    check_close({g.slices()->indices}, {0});
  }
  CHECK(f.programs()[0].calls == 1);
}

TEST_CASE("funcgrad-unused-variable-is-none: a variable that is read in vain", "[recorded][branches]") {
  const Variable v(number(1));
  const auto f = compile([&](const Tensor& x) {
    v.value();
    return x * x;
  });
  const auto both = [&](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(f(x), v, x);
  };
  f(number(1));
  for (const auto& g : {both(number(1)), compile(both)(number(1))}) {
    CHECK(!g[0].defined());
    check_close({g[1]}, {2});
  }
}

TEST_CASE("funcgrad-same-tensor-twice-1, funcgrad-same-tensor-twice-3: one tensor as two arguments",
          "[recorded][branches]") {
  const auto product = compile([](const Tensor& a, const Tensor& b) { return a * b; });
  const Both g([&](const Tensor& x) { return value_and_grad(product, std::vector{x, x}).second; });
  check_close(g(number(1)), {1, 1});
  check_close(g(number(3)), {3, 3});
}

TEST_CASE("funcgrad-matmul-transposed: one tensor as both factors", "[recorded][branches]") {
  const auto product = compile([](const Tensor& a, const Tensor& b, bool transpose) {
    return matmul(a, b, {.transpose_a = transpose});
  });
  const auto f = [&](const Tensor& t) {
    return derivative([&](const Tensor& u) { return sum(product(u, u, true)); }, t);
  };
  const Tensor t = reshape(vector({1, 2, 3, 4}), {2, 2});
  product(t, t, true);
  check_close({f(t)}, {6, 6, 14, 14});
  check_close(Both(f)(t), {6, 6, 14, 14});
}

TEST_CASE("funcgrad-gradient-in-function, funcgrad-tape-at-depth-3: tapes in functions and around them",
          "[recorded][branches]") {
  const auto f =
      compile([](const Tensor& x) { return derivative([](const Tensor& y) { return y * y; }, x); });
  f(number(1));
  check_close(derivatives<1>(f, number(1)), {2, 2});
  check_close(Both([&](const Tensor& x) { return derivatives<1>(f, x); })(number(1)), {2, 2});

  const auto a = compile([](const Tensor& x) { return x * (x + 1); });
  const auto b = compile([&](const Tensor& x) { return a(x); });
  const auto c = compile([&](const Tensor& x) { return b(x); });
  const auto d = compile([&](const Tensor& x) { return derivative(c, x); });
  const auto e = compile([&](const Tensor& x) { return d(x); });
  const Both outermost([&](const Tensor& x) { return e(x); });
  check_close(outermost(number(5)), {11});
  check_close(derivatives<1>(outermost.recorded(), number(5)), {11, 2});
}

TEST_CASE("funcgrad-undefined-outputs-between: undefined results", "[recorded][branches]") {
  const auto foo = compile([](const Tensor& a, const Tensor& b) {
    return Tensors{Tensor(), a * (a + b), Tensor(), 2 * a};
  });
  const Both bar([&](const Tensor& x) { return foo(x, number(1)); });
  const Tensor x = number(5);
  const Tensors y = bar(x);
  REQUIRE(y.size() == 4);
  CHECK((!y[0].defined() && !y[2].defined()));
  check_close({y[1], y[3]}, {30, 10});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensors z = bar.recorded()(x);
  tape.stop();
  check_close({tape.gradient(z[1], x), tape.gradient(z[3], x)}, {11, 2});
}

TEST_CASE("funcgrad-variable-as-operand: a variable is passed to a function", "[recorded][branches]") {
  const Variable v(number(1));
  const auto middle = compile([](const Tensor& a, const Tensor& b) { return a * (a + b); });
  const auto outer = compile([&](const Tensor& x) { return middle(x, v.value()); });
  const auto gradients = [&](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(outer(x), x, v);
  };
  outer(number(5));
  auto g = gradients(number(5));
  check_close(detail::tensors_of(g), {11, 5});
  check_close(Both(gradients)(number(5)), {11, 5});
}

TEST_CASE("funcgrad-sparse-cross-entropy-hessian: a Hessian of a loss", "[recorded][branches]") {
  const auto loss = compile([](const Tensor& x) {
    return sum(sparse_softmax_cross_entropy(tensor({1}), reshape(x, {1, 2})));
  });
  const double h = 0.19661193324148185;
  const Tensor x = vector({1, 2});
  loss(x);
  check_close({hessian(loss, x)}, {h, -h, -h, h});
  check_close(Both([&](const Tensor& t) { return hessian(loss, t); })(x), {h, -h, -h, h});
}

TEST_CASE("funcgrad-jvp-through-function, funcgrad-jacobian-through-function: tangents and Jacobians",
          "[recorded][branches]") {
  const auto f = compile([](const Tensor& x) { return cos(x); });
  const auto tangent = [](const auto& g) {
    return [&g](const Tensor& x) {
      const ForwardAccumulator forward(x, ones(x.shape(), x.dtype()));
      return forward.jvp(g(x)).dense();
    };
  };
  const auto all = [&](const Tensor& x) {
    return Tensors{tangent(f)(x), derivative(tangent(f), x),
                   tangent([&](const Tensor& t) { return derivative(f, t); })(x)};
  };
  f(number(1));
  check_close(all(number(1)), {-std::sin(1), -std::cos(1), -std::cos(1)});
  check_close(Both(all)(number(1)), {-std::sin(1), -std::cos(1), -std::cos(1)});

  const auto square = compile([](const Tensor& x) { return x * x + 1; });
  const auto jacobian_of = [&](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    return tape.jacobian(square(x), x).dense();
  };
  const Both recorded(jacobian_of);
  for (const auto& [a, b] : {std::array{-0.64, -0.96}, {-0.07, 0.45}, {-0.16, -0.03}, {-0.97, -0.03}}) {
    const Tensor x = vector({a, b});
    square(x);
    check_close({jacobian_of(x)}, {2 * a, 0, 0, 2 * b});
    check_close(recorded(x), {2 * a, 0, 0, 2 * b});
  }
}

TEST_CASE("a gradient of a branch is differentiated with respect to a variable", "[recorded][branches]") {
  const Variable v(tensor(2.0));
  const auto f = [v](const Tensor& p, const Tensor& x) {
    GradientTape outer, tape;
    outer.watch(v);
    tape.watch(x);
    const Tensor y = cond(
        p, {x}, [v](const Tensor& u) { return u * u * v * v; }, [](const Tensor& u) { return u; });
    const Tensor dx = tape.gradient(y, x).dense();
    return outer.gradient(dx, v, {.unconnected = UnconnectedGradients::zero}).dense();
  };
  const auto recorded = compile(f);
  for (const double x : {3.0, 5.0}) {
    CHECK(recorded(tensor(true), tensor(x)).item() == 8 * x);
    CHECK(recorded(tensor(false), tensor(x)).item() == 0);
    CHECK(f(tensor(true), tensor(x)).item() == 8 * x);
  }
}

}   // namespace branches_test
