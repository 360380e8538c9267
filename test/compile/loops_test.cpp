// Loops in compiled functions: each case runs eagerly and recorded, and both must give the expected numbers,
// and the same bits. The names of tests begin with those of the cases in which the numbers are computed.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <regex>
#include <sstream>
#include <utility>

#include "closeness.h"
#include "message_of.h"
#include "tapedeck/compile.h"
#include "tapedeck/control.h"
#include "tapedeck/memory.h"
#include "tapedeck/tapedeck.h"

namespace loops_test {

using namespace tapedeck;
using test::message_of;

namespace {

using Tensors = std::vector<Tensor>;
using Numbers = std::vector<std::vector<double>>;
constexpr DType f64 = DType::f64, i64 = DType::i64;

void check_near(const Tensors& actual, const Numbers& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t k = 0; k < actual.size(); ++k) {
    CAPTURE(k);
    CHECK_THAT(actual[k].to_vector(), Catch::Matchers::Approx(expected[k]).epsilon(1e-6).margin(1e-6));
  }
}

// A function that returns a list of tensors, and its recording.
template <class F> class Both {
 public:
  // exact: how many of the results have the same bits both ways; the rest are near.
  explicit Both(F f, std::size_t exact = 1000) : eager_(f), recorded_(compile(f)), exact_(exact) {}

  // Checks the results of a call, of its recording, and of its replay; of two replays for later arguments.
  template <class... X> void check(const Numbers& expected, const X&... x) {
    const Tensors eager = eager_(x...);
    check_near(eager, expected);
    for (const char* call : {"first", "second"}) {
      CAPTURE(call);
      const Tensors recorded = recorded_(x...);
      check_near(recorded, expected);
      for (std::size_t k = 0; k < std::min(eager.size(), exact_); ++k) {
        CAPTURE(k, eager[k], recorded[k]);
        CHECK(same_bits(eager[k], recorded[k]));
      }
    }
    CHECK(recorded_.programs().size() == 1);
    CHECK(recorded_.programs().at(0).calls > 0);
  }

 private:
  F eager_;
  Compiled<F> recorded_;
  std::size_t exact_;
};
// One type for all functions of a signature, since each takes the compiler long.
template <class F> Both(F, std::size_t = 1000) -> Both<decltype(std::function(std::declval<F>()))>;

// Checks that a call throws an E whose text contains `text`, eagerly and recorded.
template <class E, class F, class... X> void check_error(const std::string& text, const F& f, const X&... x) {
  CHECK_THAT(message_of<E>([&] { f(x...); }), Catch::Contains(text) && !Catch::Contains("another kind"));
  const auto recorded = compile(f);
  CHECK_THAT(message_of<E>([&] { recorded(x...); }),
             Catch::Contains(text) && !Catch::Contains("another kind"));
}

// The tensor that f returns, and the gradients of its sum; zeros where there are none.
template <class F> Tensors with_gradients(const F& f, const Sources& x) {
  GradientTape tape;
  for (const Source& s : x.all())
    s.variable() ? tape.watch(*s.variable()) : tape.watch(s.tensor());
  Tensors all{f()};
  for (const Gradient& g : tape.gradient(Targets(all[0]), x, {.unconnected = UnconnectedGradients::zero}))
    all.push_back(g.dense());
  return all;
}
template <class F> Tensor derivative(const F& f, const Tensor& x) {
  return with_gradients([&] { return f(x); }, x)[1];
}

Tensor squared_below(double limit, const Tensor& x) {
  return while_loop([limit](const Tensor& v) { return v < limit; }, [](const Tensor& v) { return v * v; },
                    {x});
}
// A list of a while_loop is a tensor of which each step sets an element.
Tensor pushed(const Tensor& list, const Tensor& i, const Tensor& x) {
  return where(equal(arange(list.size()), i), x, list);
}
Tensor zero() { return tensor(0, i64); }

// The loops of a program, in the order in which a replay runs them: for each, the list of its results.
template <class F> std::vector<std::string> loops_of(const F& f) {
  const auto recorded = compile(f);
  recorded();
  std::istringstream table(recorded.summary());
  std::vector<std::string> all;
  const std::regex gap(" {2,}");
  for (std::string row; std::getline(table, row);) {
    const std::vector<std::string> fields(std::sregex_token_iterator(row.begin(), row.end(), gap, -1), {});
    const bool is_loop = std::count(fields.begin(), fields.end(), "loop") ||
                         std::count(fields.begin(), fields.end(), "loop_gradient");
    if (is_loop) all.push_back(fields[fields.size() - 2]);
  }
  return all;
}
// The number of results that have an entry for each of n steps.
std::size_t stacks(const std::string& results, std::int64_t n) {
  const std::string first = "[" + std::to_string(n);
  std::size_t count = 0;
  for (std::size_t at = 0; (at = results.find(first, at)) != std::string::npos; ++at)
    ++count;
  return count;
}
// How many tensors of `bytes` bytes a replay of f(n) keeps for each of n steps.
template <class F> double kept_per_step(const F& f, std::int64_t bytes) {
  const auto recorded = compile(f);
  const auto peak = [&](std::int64_t steps) {
    const Tensor n = tensor(steps, i64);
    recorded(n);
    const std::int64_t before = live_bytes();
    reset_peak_memory();
    recorded(n);
    return static_cast<double>(peak_memory() - before);
  };
  const double few = peak(256);
  return (peak(1024) - few) / static_cast<double>(768 * bytes);
}

}   // namespace

// while_loop

TEST_CASE("while2-square-from-2, while2-square-from-3: one program for any number of steps",
          "[recorded][loops]") {
  Both f([](const Tensor& x) { return with_gradients([&] { return squared_below(8, x); }, x); });
  f.check({{16}, {32}}, tensor(2.0, f64));
  f.check({{9}, {6}}, tensor(3.0, f64));
  f.check({{16}, {32}}, tensor(2.0, f64));
  f.check({{9}, {1}}, tensor(9.0, f64));   // no step
}

TEST_CASE("while2-custom-gradient-in-body", "[recorded][loops]") {
  const Variable m(tensor(1.0, f64));
  const auto scaled_square = custom_gradient([m](const Tensor& v) {
    const Tensor factor = m;
    return std::pair(v * v * factor, [v, factor](const Tensor& dy, std::span<const Variable>) {
      return std::pair(Tensors{dy * 2 * v * factor}, Tensors{v * v});   // the second without dy, on purpose
    });
  });
  Both f([&](const Tensor& x) {
    return with_gradients(
        [&] {
          return while_loop([](const Tensor& v) { return v < 8; },
                            [&](const Tensor& v) { return scaled_square(v); }, {x});
        },
        {x, m});
  });
  f.check({{16}, {32}, {20}}, tensor(2.0, f64));
}

TEST_CASE("while2-error-dtype", "[recorded][loops][errors]") {
  for (const DType other : {DType::f16, f64})
    check_error<DTypeError>(
        "while_loop: variable 0 enters the loop as f32[] and is " + to_string(Spec{other, {}}),
        [other](const Tensor& x) {
          return while_loop([](const Tensor& v) { return v < 10; },
                            [other](const Tensor& v) { return astype(v + 1, other); }, {x});
        },
        tensor(1.0));
}

TEST_CASE("while2-variable-in-body-f32, while2-variable-in-body-f64: variables are live",
          "[recorded][loops]") {
  for (const DType dtype : {DType::f32, f64}) {
    const Variable v(tensor(1.0, dtype));
    Both f([&](const Tensor& x) {
      return with_gradients(
          [&] {
            return while_loop([](const Tensor&, const Tensor& i) { return i < 2; },
                              [&](const Tensor& t, const Tensor& i) { return std::pair(t * v, i + 1); },
                              {x, zero()})
                .first;
          },
          v);
    });
    f.check({{2}, {4}}, tensor(2.0, dtype));
    v.assign(tensor(3.0, dtype));
    f.check({{18}, {12}}, tensor(2.0, dtype));
  }
}

// Of while_loop, whose number of steps is not known, first derivatives are recorded; of scan, all.
TEST_CASE("while2-iterated-derivatives", "[recorded][loops]") {
  const auto f0 = [](const Tensor& x) {
    return while_loop([](const Tensor&, const Tensor& i) { return i < 2; },
                      [](const Tensor& y, const Tensor& i) { return std::pair(cos(y), i + 1); }, {x, zero()})
        .first;
  };
  const auto f1 = [f0](const Tensor& x) { return derivative(f0, x); };
  const auto f2 = [f1](const Tensor& x) { return derivative(f1, x); };
  const Tensor x = tensor(1.0, f64);
  Both([&](const Tensor& t) {
    return Tensors{f0(t), f1(t)};
  }).check({{0.8575532158463934}, {0.43284868477032346}}, x);
  CHECK_THAT(message_of<TraceError>([&] { compile(f2)(x); }),
             Catch::Contains("a derivative of the gradient of while_loop"));
  const auto s1 = [](const Tensor& t) {
    return derivative(
        [](const Tensor& u) { return scan([](const Tensor& y) { return cos(y); }, {u}, {}, {.length = 2}); },
        t);
  };
  const auto s2 = [s1](const Tensor& t) { return derivative(s1, t); };
  const auto s3 = [s2](const Tensor& t) { return derivative(s2, t); };
  Both([&](const Tensor& t) { return Tensors{s2(t)}; }, 0).check({{-0.32928169258793794}}, x);
  Both([&](const Tensor& t) { return Tensors{s3(t)}; }, 0).check({{-1.9089937313936867}}, x);
  // A recorded function around each one.
  const auto g1 = compile([s1](const Tensor& t) { return s1(t); });
  const auto g2 = compile([g1](const Tensor& t) { return derivative(g1, t); });
  const auto g3 = compile([g2](const Tensor& t) { return derivative(g2, t); });
  for (int call = 0; call < 2; ++call)
    check_near({g1(x), g2(x), g3(x)}, {{0.43284868477032346}, {-0.32928169258793794}, {-1.9089937313936867}});
}

TEST_CASE("while2-three-nested-with-lists", "[recorded][loops]") {
  const auto wrap = [](const auto& f) {
    return [f](const Tensor& x) {
      const auto [y, list, i] =
          while_loop([](const Tensor&, const Tensor&, const Tensor& k) { return k < 2; },
                     [f](const Tensor& t, const Tensor& all, const Tensor& k) {
                       return std::tuple(f(cos(t)), pushed(all, k, t), k + 1);
                     },
                     {x, zeros({2}, f64), zero()});
      return y + sum(list);
    };
  };
  const auto h = wrap(wrap(wrap([](const Tensor& x) { return sin(x); })));
  Both f([&](const Tensor& x) { return with_gradients([&] { return h(x); }, x); });
  f.check({{6.674375208342813}, {-0.16996259061427188}}, tensor(1.0, f64));
  const auto wrap_scan = [](const auto& f) {
    return [f](const Tensor& x) {
      const auto [y, list] =
          scan([f](const Tensor& t) { return std::pair(f(cos(t)), t); }, {x}, {}, {.length = 2});
      return y + sum(list);
    };
  };
  const auto g = wrap_scan(wrap_scan(wrap_scan([](const Tensor& x) { return sin(x); })));
  Both scans([&](const Tensor& x) { return with_gradients([&] { return g(x); }, x); });
  scans.check({{6.674375208342813}, {-0.16996259061427188}}, tensor(1.0, f64));
}

TEST_CASE("while2-condition-1x1: a condition with one element, of any rank", "[recorded][loops]") {
  Both f([](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    tape.watch(x);
    const auto [a, b] =
        while_loop([](const Tensor& u, const Tensor&) { return u < 45; },
                   [](const Tensor& u, const Tensor& v) { return std::pair(u * v, v); }, {x, y});
    return Tensors{a, b, tape.gradient(a, x).dense()};
  });
  f.check({{45}, {3}, {9}}, tensor({{5.0}}, f64), tensor(3.0, f64));
}

TEST_CASE("while2-two-vars-coupled: gradients of one result and of both", "[recorded][loops]") {
  Both f([](const Tensor& x, const Tensor& y) {
    GradientTape tape({.persistent = true});
    tape.watch(x, y);
    const auto [a, b] =
        while_loop([](const Tensor& u, const Tensor&) { return u < 45; },
                   [](const Tensor& u, const Tensor& v) { return std::pair(u * v, u + v); }, {x, y});
    tape.stop();
    Tensors all{a, b};
    for (const Targets& of : {Targets{a}, Targets{b}, Targets{a, b}})
      for (const Gradient& g : tape.gradient(of, Sources{x, y}))
        all.push_back(g.dense());
    return all;
  });
  f.check({{120}, {23}, {39}, {55}, {4}, {6}, {43}, {61}}, tensor(5.0, f64), tensor(3.0, f64));
}

TEST_CASE("while2-two-loops-one-start: two loops forward, two backward", "[recorded][loops]") {
  const auto both = [](const Tensor& x) {
    return with_gradients([&] { return squared_below(4, x) + squared_below(16, x); }, x);
  };
  Both f(both);
  f.check({{20}, {36}}, tensor(2.0, f64));
  CHECK(loops_of([both, x = Variable(tensor(2.0, f64))] { return both(x); }).size() == 4);
}

TEST_CASE("while2-assignment-per-step: a variable counts the steps", "[recorded][loops]") {
  for (const bool is_recorded : {false, true}) {
    CAPTURE(is_recorded);
    const Variable x(tensor(0.0, f64));
    const auto eager = [x](const Tensor& start) {
      return while_loop([](const Tensor& v) { return v < 20; },
                        [x](const Tensor& v) {
                          const Tensor next = 2 * v + x;
                          x.assign(x + 1.0);
                          return next;
                        },
                        {start});
    };
    const auto recorded = compile(eager);
    const auto call = [&] { return (is_recorded ? recorded(ones({}, f64)) : eager(ones({}, f64))).item(); };
    CHECK(call() == 27);
    CHECK(x.value().item() == 4);
    CHECK(call() == 40);
    CHECK(x.value().item() == 7);
  }
}

TEST_CASE("while2-unused-list-is-dropped", "[recorded][loops]") {
  const auto list = [](const Tensor& x) {
    const auto [last, all, i] =
        while_loop([](const Tensor& v, const Tensor&, const Tensor&) { return v < 5; },
                   [](const Tensor& v, const Tensor& pushes, const Tensor& n) {
                     return std::tuple(v + 1, pushed(pushes, n, v), n + 1);
                   },
                   {x, zeros({4}, i64), zero()});
    return Tensors{last, all};
  };
  Both(list).check({{5}, {1, 2, 3, 4}}, tensor(1, i64));
  Both([&](const Tensor& x) { return Tensors{list(x)[0]}; }).check({{5}}, tensor(1, i64));
  // The outputs of a scan are a list, too.
  const auto steps = [](const Tensor& x) {
    const auto [last, all] =
        scan([](const Tensor& v) { return std::pair(v + 1, v); }, {x}, {}, {.length = 37});
    return Tensors{last, all};
  };
  const Variable x(tensor(1, i64));
  CHECK(stacks(loops_of([=] { return steps(x); }).at(0), 37) == 1);
  CHECK(stacks(loops_of([=] { return steps(x)[0]; }).at(0), 37) == 0);
}

TEST_CASE("while2-invariants-are-not-stacked: a captured tensor is not kept for each step",
          "[recorded][loops][memory]") {
  const auto power = [](const Tensor& v, const Tensor& n) {
    return with_gradients(
        [&] {
          return while_loop([n](const Tensor&, const Tensor& i) { return i < n; },
                            [v](const Tensor& x, const Tensor& i) { return std::pair(v * x, i + 1); },
                            {ones_like(v), zero()})
              .first;
        },
        v);
  };
  Both f(power);
  f.check({{3125}, {3125}}, tensor(5.0, f64), tensor(5, i64));
  const Tensor v = ones({32}, f64);
  const double stacks = kept_per_step([&](const Tensor& n) { return power(v, n); }, v.nbytes());
  CHECK(stacks > 0.7);
  CHECK(stacks < 1.6);   // two stacks are more
}

TEST_CASE("gradients of a constant that a tape follows, in a loop and a branch", "[recorded][loops]") {
  const Tensor v = tensor({1.5, 2.5}, f64);
  Both f([v](const Tensor& n) {
    return with_gradients(
        [&] {
          const Tensor y =
              while_loop([n](const Tensor&, const Tensor& i) { return i < n; },
                         [v](const Tensor& x, const Tensor& i) { return std::pair(v * x, i + 1); },
                         {ones_like(v), zero()})
                  .first;
          return cond(
              n > 3, {y}, [v](const Tensor& a) { return a * v; }, [](const Tensor& a) { return a; });
        },
        v);
  });
  f.check({{1.5, 2.5}, {1, 1}}, tensor(1, i64));
  f.check({{2.25, 6.25}, {3, 5}}, tensor(2, i64));
  f.check({{7.59375, 97.65625}, {25.3125, 195.3125}}, tensor(4, i64));
}

TEST_CASE("while2-capture-in-body: gradients of what a body captures", "[recorded][loops]") {
  Both f([](const Tensor& x, const Tensor& y) {
    return with_gradients(
        [&] {
          return while_loop([](const Tensor& v) { return v < 8; }, [y](const Tensor& v) { return v * y; },
                            {x});
        },
        {x, y});
  });
  f.check({{18}, {9}, {12}}, tensor(2.0, f64), tensor(3.0, f64));
}

namespace {

// While x < 5: pushes x and, if `also` is not 0, that; squares x. The last x and the list.
std::pair<Tensor, Tensor> squares_and_list(const Tensor& x, std::int64_t length, double also) {
  const auto [last, list, n] =
      while_loop([](const Tensor& v, const Tensor&, const Tensor&) { return v < 5; },
                 [also](const Tensor& v, const Tensor& all, const Tensor& i) {
                   const Tensor once = pushed(all, i, v);
                   if (also == 0) return std::tuple(square(v), once, i + 1);
                   return std::tuple(square(v), pushed(once, i + 1, tensor(also, f64)), i + 2);
                 },
                 {x, zeros({length}, f64), zero()});
  return {last, list};
}

}   // namespace

TEST_CASE("while2-list-with-constants", "[recorded][loops]") {
  Both f([](const Tensor& x) {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    const auto [last, list] = squares_and_list(x, 4, 100);
    const Tensor total = sum(list) + last;
    tape.stop();
    return Tensors{last, list, tape.gradient(last, x).dense(), tape.gradient(total, x).dense()};
  });
  f.check({{16}, {2, 100, 4, 100}, {32}, {37}}, tensor(2.0, f64));
}

TEST_CASE("while2-stack-exists-once: what a list contains is not kept a second time",
          "[recorded][loops][memory]") {
  Both f([](const Tensor& x) { return with_gradients([&] { return squares_and_list(x, 2, 0).first; }, x); });
  f.check({{16}, {32}}, tensor(2.0, f64));
  // The outputs of a scan are a list: here the list and what the gradient reads are one stack.
  const Variable x(tensor(1.5, f64));
  const auto list_and_gradient = [x] {
    GradientTape tape;
    const auto [last, all] =
        scan([](const Tensor& v) { return std::pair(square(v), v); }, {x}, {}, {.length = 37});
    return Tensors{all, tape.gradient(last, x).dense()};
  };
  CHECK(stacks(loops_of(list_and_gradient).at(0), 37) == 1);
}

TEST_CASE("while2-nested-geometric-5, while2-nested-geometric-0: the inner number of steps varies",
          "[recorded][loops]") {
  Both f([](const Tensor& n, const Tensor& m) {
    const auto power = [n](const Tensor& exponent) {
      return while_loop([exponent](const Tensor&, const Tensor& j) { return j < exponent; },
                        [n](const Tensor& p, const Tensor& j) { return std::pair(p * n, j + 1); },
                        {ones_like(n), zero()})
          .first;
    };
    return with_gradients(
        [&] {
          return while_loop(
                     [](const Tensor&, const Tensor& i) { return i >= 0; },
                     [&](const Tensor& all, const Tensor& i) { return std::pair(all + power(i), i - 1); },
                     {zeros_like(n), m})
              .first;
        },
        n);
  });
  f.check({{364}, {547}}, tensor(3.0, f64), tensor(5, i64));
  f.check({{1}, {0}}, tensor(1.5, f64), zero());
  f.check({{1 + 1.5 + 2.25}, {1 + 3.0}}, tensor(1.5, f64), tensor(2, i64));
}

TEST_CASE("while2-identities-in-body", "[recorded][loops]") {
  Both f([](const Tensor& x) {
    return with_gradients(
        [&] {
          return while_loop([](const Tensor& v) { return v < 8; },
                            [](const Tensor& v) {
                              const Tensor same = identity(identity(v));
                              return same * same;
                            },
                            {x});
        },
        x);
  });
  f.check({{16}, {32}}, tensor(2.0, f64));
}

TEST_CASE("while2-thousand-steps", "[recorded][loops]") {
  Both f([](const Tensor& x) {
    return Tensors{
        while_loop([](const Tensor& v) { return v < 1000; }, [](const Tensor& v) { return v + 1; }, {x})};
  });
  f.check({{1000}}, zero());
  f.check({{1000}}, tensor(998, i64));
  f.check({{1001}}, tensor(1001, i64));
}

TEST_CASE("while2-function-in-body: a recorded function in a body", "[recorded][loops]") {
  const auto twice = compile([](const Tensor& v) { return 2 * v; });
  Both f([&](const Tensor& x) {
    return with_gradients(
        [&] {
          return while_loop([](const Tensor& v) { return v < 5; }, [&](const Tensor& v) { return twice(v); },
                            {x});
        },
        x);
  });
  f.check({{8}, {8}}, tensor(1.0, f64));
}

TEST_CASE("while2-counter-and-value: under a tape of the caller, too", "[recorded][loops]") {
  const auto f = [](const Tensor& x) {
    return while_loop([](const Tensor&, const Tensor& i) { return i < 2; },
                      [](const Tensor& v, const Tensor& i) { return std::pair(2 * v, i + 1); }, {x, zero()})
        .first;
  };
  const Tensor x = tensor(1.0, f64);
  Both([&](const Tensor& t) { return with_gradients([&] { return f(t); }, t); }).check({{4}, {4}}, x);
  const auto recorded = compile(f);
  for (int call = 0; call < 2; ++call) {
    check_near(with_gradients([&] { return recorded(x); }, x), {{4}, {4}});
    CHECK(recorded(x).item() == 4);
  }
}

TEST_CASE("while2-jax-nested-counts", "[recorded][loops]") {
  Both f([](const Tensor& n) {
    const auto inner = [](const Tensor& i, const Tensor& count) {
      return while_loop([i](const Tensor& j, const Tensor&) { return j <= i; },
                        [](const Tensor& j, const Tensor& c) { return std::pair(j + 1, c + 1); },
                        {zero(), count})
          .second;
    };
    const auto [i, count] = while_loop(
        [n](const Tensor& k, const Tensor&) { return k < n; },
        [&](const Tensor& k, const Tensor& c) { return std::pair(k + 1, inner(k, c)); }, {zero(), zero()});
    return Tensors{i, count};
  });
  f.check({{3}, {6}}, tensor(3, i64));
  f.check({{2}, {3}}, tensor(2, i64));
  f.check({{4}, {10}}, tensor(4, i64));
}

TEST_CASE("while2-sum-of-first-5, while2-sum-of-first-15: one program for any count", "[recorded][loops]") {
  Both f([](const Tensor& x, const Tensor& n) {
    return with_gradients(
        [&] {
          return while_loop(
                     [n](const Tensor&, const Tensor& i) { return logical_and(i < n, i < 10); },
                     [x](const Tensor& s, const Tensor& i) { return std::pair(s + gather(x, i), i + 1); },
                     {tensor(0.0, f64), zero()})
              .first;
        },
        x);
  });
  const Tensor x = tensor({0.1, 0.42, -0.42, 0.02, 0.79, 0.79, -0.75, -0.59, -0.9, -0.12}, f64);
  const std::vector<double> none(10, 0), all(10, 1);
  f.check({{0.91}, {1, 1, 1, 1, 1, 0, 0, 0, 0, 0}}, x, tensor(5, i64));
  f.check({{0}, none}, x, tensor(0, i64));
  f.check({{-0.66}, all}, x, tensor(10, i64));
  f.check({{-0.66}, all}, x, tensor(15, i64));
}

TEST_CASE("while2-nested-updates-tril: nested loops that write one element each", "[recorded][loops]") {
  Both f([](const Tensor& x) {
    const auto row = [x](const Tensor& i, const Tensor& before) {
      return while_loop([i](const Tensor& j, const Tensor&) { return j <= i; },
                        [x, i](const Tensor& j, const Tensor& out) {
                          const Tensor at = stack({i, j});
                          return std::pair(j + 1, tensor_scatter_update(out, expand_dims(at, 0),
                                                                        expand_dims(gather_nd(x, at), 0)));
                        },
                        {zero(), before})
          .second;
    };
    GradientTape tape;
    tape.watch(x);
    const Tensor out =
        while_loop([](const Tensor& i, const Tensor&) { return i < 5; },
                   [&](const Tensor& i, const Tensor& y) { return std::pair(i + 1, row(i, y)); },
                   {zero(), zeros_like(x)})
            .second;
    return Tensors{out, tape.gradient(sum(out * out), x).dense()};
  });
  const Tensor x = tensor({{0.93, 0.09, 0.95, 0.43, 0.4},
                           {-0.57, 0.95, -0.99, -0.49, -0.13},
                           {0.56, -0.6, 0.73, 0.97, -0.67},
                           {0.19, -0.98, -0.23, -0.91, 0.91},
                           {-0.13, 0.9, 0.57, 0.73, -0.65}},
                          f64);
  f.check({{0.93, 0, 0,    0,     0,     -0.57, 0.95, 0,     0,   0,    0.56, -0.6, 0.73,
            0,    0, 0.19, -0.98, -0.23, -0.91, 0,    -0.13, 0.9, 0.57, 0.73, -0.65},
           {1.86, 0, 0,    0,     0,     -1.14, 1.9, 0,     0,   0,    1.12, -1.2, 1.46,
            0,    0, 0.38, -1.96, -0.46, -1.82, 0,   -0.26, 1.8, 1.14, 1.46, -1.3}},
          x);
}

TEST_CASE("while2-fori-closure: a step with its index as a tensor", "[recorded][loops]") {
  const double expected[] = {5, 12, 22};
  for (const std::int64_t n : {2, 3, 4}) {
    Both f([n](const Tensor& start) {
      return Tensors{
          fori_loop(0, n, [n](const Tensor& i, const Tensor& total) { return total + (n + i); }, {start})};
    });
    f.check({{expected[n - 2]}}, zero());
    Both numbers([n](const Tensor& start) {
      return Tensors{
          fori_loop(0, n, [n](std::int64_t i, const Tensor& total) { return total + (n + i); }, {start})};
    });
    numbers.check({{expected[n - 2]}}, zero());
  }
}

TEST_CASE("while2-jvp-fori: forward mode", "[recorded][loops]") {
  const auto doubled = [](const Tensor& x) {
    return fori_loop(0, 3, [](const Tensor&, const Tensor& v) { return 2 * v; }, {x});
  };
  const auto factorial = [](const Tensor& x) {
    return fori_loop(0, 3, [](const Tensor& i, const Tensor& v) { return astype(i + 1, f64) * v; }, {x});
  };
  const Tensor x = tensor(2.0, f64), dx = tensor(1.0, f64);
  Both f([&](const Tensor& v, const Tensor& dv) {
    const ForwardAccumulator forward(v, dv);
    const Tensor a = doubled(v), b = factorial(v);
    return Tensors{a, b, forward.jvp(a).dense(), forward.jvp(b).dense()};
  });
  f.check({{16}, {12}, {8}, {6}}, x, dx);
  Both reverse([&](const Tensor& v) { return Tensors{derivative(doubled, v), derivative(factorial, v)}; });
  reverse.check({{8}, {6}}, x);
  Both second(
      [&](const Tensor& v) {
        return Tensors{derivative([&](const Tensor& t) { return derivative(doubled, t); }, v),
                       derivative([&](const Tensor& t) { return derivative(factorial, t); }, v)};
      },
      0);
  second.check({{0}, {0}}, x);
}

TEST_CASE("while2-jvp-growing-tangents: variables that get tangents step by step", "[recorded][loops]") {
  Both f([](const Tensor& x0, const Tensor& dx, const Tensor& y0, const Tensor& z0) {
    const ForwardAccumulator forward(x0, dx);
    const auto [i, x, y, z] =
        while_loop([](const Tensor& k, const Tensor&, const Tensor&, const Tensor&) { return k < 2; },
                   [](const Tensor& k, const Tensor& a, const Tensor&, const Tensor&) {
                     const Tensor b = a * a;
                     return std::tuple(k + 1, a, b, b * b);
                   },
                   {zero(), x0, y0, z0});
    return Tensors{x, y, z, forward.jvp(x).dense(), forward.jvp(y).dense(), forward.jvp(z).dense()};
  });
  const Tensor x = tensor({0.5, -1.25}, f64);
  f.check({{0.5, -1.25}, {0.25, 1.5625}, {0.0625, 2.44140625}, {0.5, -1.25}, {0.5, 3.125}, {0.25, 9.765625}},
          x, x, tensor({0.3, -0.2}, f64), tensor({0.1, 0.4}, f64));
}

TEST_CASE("while2-one-tensor-two-variables: a variable that is written in place is not seen by another",
          "[recorded][loops]") {
  for (const Shape& shape : {Shape{}, Shape{100}}) {
    Both f([](const Tensor& one) {
      const auto [x, y] = while_loop([](const Tensor& a, const Tensor&) { return max(a) < 10; },
                                     [](const Tensor& a, const Tensor& b) {
                                       const Tensor next = a + 1;
                                       return std::pair(next, b + next);
                                     },
                                     {one, one});
      return Tensors{max(x), min(x), max(y), min(y)};
    });
    f.check({{10}, {10}, {55}, {55}}, ones(shape, f64));
  }
  Both g([](const Tensor& one) {   // also if the results are the arguments of the next step, exchanged
    const auto [x, y, n] = while_loop(
        [](const Tensor&, const Tensor&, const Tensor& i) { return i < 5; },
        [](const Tensor& a, const Tensor& b, const Tensor& i) { return std::tuple(b, a + 1, i + 1); },
        {one, one, zero()});
    return Tensors{x, y};
  });
  g.check({{3}, {4}}, tensor(1.0, f64));
  g.check({{6}, {7}}, tensor(4.0, f64));
}

TEST_CASE("while2-256-variables", "[recorded][loops]") {
  Both f([](const Tensor& x) {
    return while_loop([](std::span<const Tensor> v) { return v[0] < 2; },
                      [](std::span<const Tensor> v) {
                        Tensors next;
                        for (const Tensor& t : v)
                          next.push_back(t + 1);
                        return next;
                      },
                      Tensors(256, x));
  });
  f.check(Numbers(256, {2}), zero());
}

TEST_CASE("while2-error-condition-not-bool, while2-error-condition-shape", "[recorded][loops][errors]") {
  const auto f = [](const Tensor& x) {
    return while_loop([](const Tensor& v) { return v + 1; }, [](const Tensor& v) { return v; }, {x});
  };
  check_error<DTypeError>("while_loop: the condition is f32[]", f, tensor(0.0));
  const auto g = [](const Tensor& x) {
    return while_loop([](const Tensor& v) { return v < 1; }, [](const Tensor& v) { return v; }, {x});
  };
  check_error<ShapeError>("while_loop: the condition is bool[2]", g, tensor({0.0, 1.0}));
}

TEST_CASE("while2-error-second-variable", "[recorded][loops][errors]") {
  const auto f = [](const Tensor& holds, const Tensor& x) {
    return while_loop([](const Tensor& b, const Tensor&) { return b; },
                      [](const Tensor& b, const Tensor& v) { return std::pair(b, v > 0); }, {holds, x});
  };
  check_error<DTypeError>("while_loop: variable 1 enters the loop as f32[] and is bool[] after step 1", f,
                          tensor(1, DType::boolean), tensor(0.0));
}

TEST_CASE("while2-error-shape-grows", "[recorded][loops][errors]") {
  const auto f = [](const Tensor& x) {
    return while_loop([](const Tensor& v) { return sum(v) < 100; },
                      [](const Tensor& v) {
                        return concat({v, v}, 0);
                      },
                      {x});
  };
  check_error<ShapeError>("while_loop: variable 0 enters the loop as f32[2,2] and is f32[4,2]", f,
                          tensor({{1.0, 2.0}, {3.0, 4.0}}));
}

namespace {

// Steps of x = r x (1 - x) in a loop of either kind: the last x, its gradient in x, and its gradient in r.
Tensors logistic(const Tensor& r, const Tensor& x, std::int64_t steps, std::int64_t snapshots, bool is_fori) {
  const auto step = [r](const Tensor& t) { return r * t * (1 - t); };
  return with_gradients(
      [&] {
        if (is_fori)
          return fori_loop(0, steps, [step](std::int64_t, const Tensor& t) { return step(t); }, {x},
                           {.snapshots = snapshots});
        return while_loop([steps](const Tensor&, const Tensor& i) { return i < steps; },
                          [step](const Tensor& t, const Tensor& i) { return std::pair(step(t), i + 1); },
                          {x, zero()}, {.snapshots = snapshots})
            .first;
      },
      {x, r});
}
// The gradient in r is summed in parts, so that its last bits depend on the snapshots.
void check_logistic(std::int64_t steps, std::initializer_list<std::int64_t> snapshots,
                    const Numbers& expected) {
  const Tensor r = tensor(2.9, f64), x = tensor(0.3, f64);
  for (const bool is_fori : {false, true}) {
    const Tensors all = logistic(r, x, steps, 0, is_fori);
    for (const std::int64_t n : snapshots) {
      CAPTURE(is_fori, n);
      const auto f = [=](const Tensor& a, const Tensor& b) { return logistic(a, b, steps, n, is_fori); };
      Both(f, 2).check(expected, r, x);
      const Tensors kept = compile(f)(r, x);
      CHECK(same_bits(kept[0], all[0]));
      CHECK(same_bits(kept[1], all[1]));
    }
  }
}

}   // namespace

TEST_CASE("while2-checkpoint-every-3, while2-checkpoint-every-20: as snapshots",
          "[recorded][loops][snapshots]") {
  check_logistic(20, {0, 3, 20}, {{0.6603892878270023}, {-0.0988711396912536}, {0.21773160975122083}});
}

// Snapshots

TEST_CASE("checkpoint-gradient-100-5, checkpoint-gradient-57-3: recorded", "[recorded][loops][snapshots]") {
  check_logistic(100, {0, 5}, {{0.655173561985832}, {-2.1888905269180383e-05}, {0.11902997740724987}});
  check_logistic(57, {0, 3}, {{0.655065836056897}, {0.002032149315318469}, {0.11249505589120543}});
}

TEST_CASE("checkpoint-perturbation-spreads: recorded", "[recorded][loops][snapshots]") {
  for (const std::int64_t snapshots : {0, 1, 2, 3}) {
    CAPTURE(snapshots);
    Both f([snapshots](const Tensor& x, const Tensor& one) {
      return with_gradients(
          [&] {
            const auto [i, a, b, c, d] = while_loop(
                [](std::span<const Tensor> v) { return v[0] < 3; },
                [](std::span<const Tensor> v) {
                  return std::array{v[0] + 1, v[1] + 1, v[1] + v[2], v[2] + v[3], 2 * stop_gradient(v[4])};
                },
                {zero(), x, one, one, one}, {.snapshots = snapshots});
            return b + d;
          },
          x);
    });
    f.check({{15}, {3}}, tensor(1.0, f64), tensor(1.0, f64));
    Both g([snapshots](const Tensor& x, const Tensor& one) {
      return with_gradients(
          [&] {
            const auto [a, b, c, d] = fori_loop(
                0, 3,
                [](std::int64_t, const Tensor& u, const Tensor& v, const Tensor& w, const Tensor& z) {
                  return std::tuple(u + 1, u + v, v + w, 2 * stop_gradient(z));
                },
                {x, one, one, one}, {.snapshots = snapshots});
            return b + d;
          },
          x);
    });
    g.check({{15}, {3}}, tensor(1.0, f64), tensor(1.0, f64));
  }
}

TEST_CASE("checkpoint-gradient-only-of-capture: recorded", "[recorded][loops][snapshots]") {
  for (const std::int64_t snapshots : {0, 1, 2, 3}) {
    CAPTURE(snapshots);
    Both f([snapshots](const Tensor& x, const Tensor& y) {
      return with_gradients(
          [&] {
            const auto [a, b] =
                while_loop([](const Tensor&, const Tensor& v) { return v < 3.5; },
                           [x](const Tensor& u, const Tensor& v) { return std::pair(u * x, v + 1); },
                           {tensor(1.0, f64), y}, {.snapshots = snapshots});
            return a + b;
          },
          {x, y});
    });
    f.check({{5}, {3}, {1}}, tensor(1.0, f64), tensor(1.0, f64));
    Both g([snapshots](const Tensor& x, const Tensor& y) {
      return with_gradients(
          [&] {
            const auto [a, b] =
                scan([x](const Tensor& u, const Tensor& v) { return std::pair(u * x, v + 1); },
                     {tensor(1.0, f64), y}, {}, {.length = 3, .snapshots = snapshots});
            return a + b;
          },
          {x, y});
    });
    g.check({{5}, {3}, {1}}, tensor(1.0, f64), tensor(1.0, f64));
  }
}

// scan

namespace {

const Tensor c0 = tensor({0.03, 0.89, 0.53, -0.44}, f64);
const Tensor a0 = tensor({{-0.58, -0.04, -0.16},
                          {0.72, -0.66, -0.32},
                          {-0.46, 0.38, -0.56},
                          {0.62, -0.98, 0.12},
                          {0.63, 0.49, -0.62}},
                         f64);
const Tensor d0 = tensor({-0.9, -0.42}, f64);

// The last carry and the outputs of c = sin(c b), b = sum(sin a) + sum(sin c) + sum(sin d).
std::pair<Tensor, Tensor> sines(const Tensor& c, const Tensor& a, const Tensor& d,
                                std::int64_t snapshots = 0) {
  return scan(
      [d](const Tensor& carry, const Tensor& row) {
        const Tensor b = sum(sin(row)) + sum(sin(carry)) + sum(sin(d));
        return std::pair(sin(carry * b), b);
      },
      {c}, {a}, {.snapshots = snapshots});
}

}   // namespace

TEST_CASE("scan-linearize: one program for all tangents", "[recorded][loops]") {
  Both f([](const Tensor& c, const Tensor& a, const Tensor& dc, const Tensor& da) {
    const ForwardAccumulator forward({c, a}, {dc, da});
    const auto [carry, ys] = scan(
        [](const Tensor& now, const Tensor& row) {
          const Tensor b = cos(sum(sin(row)) + sum(cos(now)) + sum(d0));
          return std::pair(sin(now * b), b);
        },
        {c}, {a});
    return Tensors{forward.jvp(carry).dense(), forward.jvp(ys).dense()};
  });
  const Numbers once = {{0.01215600380818072, 0.3435889616993217, 0.21111184015900006, -0.17620064937248778},
                        {1.7777331158978353, 0.6089325196558691, 0.7152696351166477, -0.016849849660119324,
                         0.005805311569757221}};
  Numbers twice = once;
  for (auto& row : twice)
    for (double& v : row)
      v *= 2;
  f.check(once, c0, a0, 1 * c0, 1 * a0);
  f.check(twice, c0, a0, 2 * c0, 2 * a0);
}

TEST_CASE("scan-grad-checkpoint-0: gradients of the carry and of what is scanned", "[recorded][loops]") {
  for (const std::int64_t snapshots : {0, 1, 3, 5}) {
    CAPTURE(snapshots);
    Both f([snapshots](const Tensor& c, const Tensor& a) {
      return with_gradients([&] { return sum(sines(c, a, d0, snapshots).first); }, {c, a});
    });
    f.check({{0.29735170809344896},
             {5.366007618579304, -0.04886597890938227, -0.062044415936177634, 0.07832344153059669},
             {-0.10423348289715277, -0.12451256160575795, -0.12302060129973497, -0.035753419536997635,
              -0.037569444590386865, -0.045142529281947646, -0.14517137674667202, -0.15045493880647107,
              -0.13726560805436328, -0.042434607869015255, -0.029042461012118288, -0.051763804296025624,
              0.8926524220583134, 0.9747397894227303, 0.8991161416255053}},
            c0, a0);
  }
}

TEST_CASE("scan-grad-of-all: gradients through the last carry and the outputs", "[recorded][loops]") {
  Both f([](const Tensor& c, const Tensor& a) {
    return with_gradients(
        [&] {
          const auto [carry, ys] = sines(c, a, d0);
          return sum(carry) + sum(ys);
        },
        {c, a});
  });
  f.check(
      {{-5.714463544848626},
       {11.430089896533595, 0.29868582396484966, 0.7866280741731404, 1.2390867837713149},
       {1.1875805200276357, 1.418629489793037, 1.4016308925396415, 0.767836806651714, 0.8068375762522542,
        0.9694763739217683, 1.134964280337251, 1.1762716946857512, 1.073156193402616, 0.738502058684497,
        0.5054345573998896, 0.9008608293484262, 1.7006799303704654, 1.8570726480328517, 1.7129945982880392}},
      c0, a0);
}

TEST_CASE("scan-grad-of-capture", "[recorded][loops]") {
  Both f([](const Tensor& d) { return with_gradients([&] { return sum(sines(c0, a0, d).first); }, d); });
  f.check({{0.29735170809344896}, {0.4465710581402347, 0.6559725793745067}}, d0);
}

TEST_CASE("scan-rnn-hvp: a Hessian times a vector", "[recorded][loops]") {
  const Tensor x = tensor(
                   {{-0.5, -0.1, -0.18, -0.48}, {0.74, -0.63, -0.96, 0.91}, {0.36, -0.03, 0.93, -0.21}}, f64),
               target = tensor({{-0.92}, {0.56}, {-0.81}}, f64),
               w_out = tensor({{0.72, -0.25, 0.11, 0.91, 0.47, 0.63}}, f64);
  const auto loss = [&](const Tensor& w) {
    const auto [state, outputs] = scan(
        [w, w_out](const Tensor& h, const Tensor& row) {
          const Tensor z = expand_dims(concat({h, row}, 0), 1);
          return std::pair(tanh(squeeze(matmul(w, z), 1)), tanh(squeeze(matmul(w_out, z), 1)));
        },
        {zeros({2}, f64)}, {x});
    return sum(square(outputs - target));
  };
  Both f(
      [&](const Tensor& w, const Tensor& v) {
        return Tensors{derivative([&](const Tensor& u) { return sum(derivative(loss, u) * v); }, w)};
      },
      0);
  const Tensor w =
      tensor({{-0.43, 0.92, 0.54, 0.97, -0.58, -0.73}, {0.82, -0.86, -0.85, 0.09, -0.82, -0.24}}, f64);
  f.check({{0.06161727244755808, 0.21880942001080594, -0.3577086008540413, 0.4260157889046487,
            0.6555494912634198, -0.47105125786288904, 0.004450560231163914, 0.08288643767788148,
            0.616606519730591, -0.1968721548456287, -0.2827584881954428, 0.6740895781892242}},
          w, identity(w));
}

TEST_CASE("scan-gradient-descent-inside: a tape inside of a step", "[recorded][loops]") {
  Both f(
      [](const Tensor& p) {
        return with_gradients(
            [&] {
              const auto energy = [p](const Tensor& x) { return sum(x * p); };
              const Tensor x = scan([&](const Tensor& at) { return at - 0.1 * derivative(energy, at); },
                                    {tensor({1.0, 2.0, 3.0}, f64)}, {}, {.length = 75});
              return sum(sin(1 - x));
            },
            p);
      },
      1);
  f.check({{1.5969545504604936}, {10.002457644023098}}, tensor(0.25, f64));
}

TEST_CASE("scan-map: without a carry", "[recorded][loops]") {
  Both f([](const Tensor& xs) { return Tensors{scan([](const Tensor& x) { return x * x; }, {}, {xs})}; });
  f.check({{0, 1, 4, 9, 16, 25, 36, 49, 64, 81}}, arange(10));
}

// Differs from the fact, whose result is empty: no step has run, so the number of outputs is not known.
TEST_CASE("scan-map-empty", "[recorded][loops]") {
  const auto f = [](const Tensor& xs) { return scan([](const Tensor& x) { return x * x; }, {}, {xs}); };
  check_error<ArgumentError>("scan: the function returns 1 tensors, not 0", f, zeros({0}, f64));
}

TEST_CASE("scan-zero-steps-carry: the carry comes back", "[recorded][loops]") {
  SECTION("without outputs") {
    Both f([](const Tensor& c) {
      return with_gradients(
          [&] {
            return scan([](const Tensor& a, const Tensor& x) { return a + x; }, {c}, {zeros({0}, f64)});
          },
          c);
    });
    f.check({{0.5}, {1}}, tensor(0.5, f64));
  }
  SECTION("with outputs, of which none is known") {
    const auto f = [](const Tensor& c) {
      return scan([](const Tensor& a, const Tensor& x) { return std::pair(a + x, x); }, {c},
                  {zeros({0}, f64)})
          .first;
    };
    check_error<ArgumentError>("scan: the function returns 2 tensors, not 1", f, tensor(0.5, f64));
  }
}

TEST_CASE("scan-no-outputs: a length in place of tensors to scan", "[recorded][loops]") {
  Both f([](const Tensor& c) {
    return Tensors{scan([](const Tensor& a) { return a + 1; }, {c}, {}, {.length = 20})};
  });
  f.check({{20}}, zero());
  f.check({{25}}, tensor(5, i64));
}

TEST_CASE("scan-forward-sums: of integers", "[recorded][loops]") {
  Both f([](const Tensor& xs) {
    const auto [last, ys] =
        scan([](const Tensor& c, const Tensor& x) { return std::pair(c + x, c + x); }, {zero()}, {xs});
    return Tensors{last, ys};
  });
  f.check({{23}, {3, 4, 8, 9, 14, 23}}, tensor({3, 1, 4, 1, 5, 9}, i64));
}

TEST_CASE("scan-doubling-grad: a carry without influence", "[recorded][loops]") {
  Both f([](const Tensor& x, const Tensor& y) {
    return with_gradients(
        [&] {
          return scan([](const Tensor& a, const Tensor& b) { return std::pair(2 * a, zeros_like(b)); },
                      {x, y}, {}, {.length = 3})
              .first;
        },
        {x, y});
  });
  f.check({{0}, {8}, {0}}, tensor(0.0, f64), tensor(0.0, f64));
}

namespace {

Tensors linear_map(const Tensor& a, const Tensor& x, std::int64_t steps) {
  return with_gradients(
      [&] {
        return sum(scan([a](const Tensor& now) { return matmul(a, now); }, {x}, {}, {.length = steps}));
      },
      a);
}
}   // namespace

TEST_CASE("scan-linear-map-grad: a captured matrix is not kept for each step", "[recorded][loops][memory]") {
  Both f([](const Tensor& a, const Tensor& x) { return linear_map(a, x, 10); });
  f.check(
      {{114.28500933302192},
       {-319.3239758129547, -348.89805300118223, -17.866501927363693, -394.77684475418306,
        -429.06497174166253, -22.04828898990034, 55.853086249050484, 58.91929372815456, 1.859867704306576}},
      tensor({{-0.5, -0.91, 0.35}, {-0.91, -0.77, 0.21}, {-0.62, 0.34, 0.83}}, f64),
      tensor({{1.0}, {0.5}, {-0.5}}, f64));
  const Variable a(eye(3, f64)), x(ones({3, 1}, f64));
  const std::vector<std::string> loops = loops_of([=] { return linear_map(a, x, 37); });
  REQUIRE(loops.size() == 2);
  CHECK(stacks(loops[0], 37) == 1);
  CHECK(stacks(loops[1], 37) == 0);
}

TEST_CASE("scan-error-length, scan-error-no-axis, scan-error-too-few", "[recorded][loops][errors]") {
  const auto step = [](const Tensor& c, const Tensor& x) { return c + x; };
  check_error<ShapeError>(
      "scan: length is 5, input 0 is f32[10]",
      [=](const Tensor& xs) { return scan(step, {tensor(0.0)}, {xs}, {.length = 5}); }, zeros({10}));
  check_error<ShapeError>(
      "scan: input 0 has no first axis", [=](const Tensor& xs) { return scan(step, {tensor(0.0)}, {xs}); },
      tensor(1.0));
  check_error<ArgumentError>(
      "scan: the function returns 1 tensors, not 2",
      [](const Tensor& xs) {
        return scan([](const Tensor& a, const Tensor& b, const Tensor& x) { return Tensors{a + b + x}; },
                    {tensor(0.0), tensor(0.0)}, {xs});
      },
      zeros({10}));
}

TEST_CASE("scan-pair-sums: two carries", "[recorded][loops]") {
  Both f([](const Tensor& u, const Tensor& v) {
    const auto [a, b, first, second] = scan(
        [](const Tensor& s, const Tensor& t, const Tensor& x, const Tensor& y) {
          const Tensor next = s + x, other = t + y;
          return std::tuple(next, other, next, other);
        },
        {tensor(0.0, f64), tensor(0.0, f64)}, {u, v});
    return Tensors{first, second, a, b};
  });
  f.check({{0, 1, 3}, {0, 10, 30}, {3}, {30}}, tensor({0.0, 1.0, 2.0}, f64), tensor({0.0, 10.0, 20.0}, f64));
}

TEST_CASE("scan-xor: of bools", "[recorded][loops]") {
  Both f([](const Tensor& xs) {
    return Tensors{scan(
                       [](const Tensor& c, const Tensor& x) {
                         const Tensor next = not_equal(c, x);
                         return std::pair(next, next);
                       },
                       {zeros({}, DType::boolean)}, {xs})
                       .second};
  });
  f.check({{0, 1, 0, 1, 1, 0}}, tensor({0, 1, 1, 1, 0, 1}, DType::boolean));
}

TEST_CASE("scan-cond-in-step: a branch in a step, to second order", "[recorded][loops]") {
  const auto power = [](const Tensor& x) {
    return scan(
               [x](const Tensor& v, const Tensor& flag) {
                 return cond(
                     flag, {v}, [x](const Tensor& t) { return std::pair(t * x, tensor(1, DType::boolean)); },
                     [](const Tensor& t) { return std::pair(t, tensor(0, DType::boolean)); });
               },
               {ones({}, f64), tensor(1, DType::boolean)}, {}, {.length = 4})
        .first;
  };
  Both f(
      [&](const Tensor& x) {
        return Tensors{power(x), derivative(power, x),
                       derivative([&](const Tensor& t) { return derivative(power, t); }, x)};
      },
      2);
  f.check({{81}, {108}, {108}}, tensor(3.0, f64));
}

TEST_CASE("scan-many-scalar-leaves-60-20, scan-many-scalar-leaves-60-614", "[recorded][loops]") {
  const auto run = [](std::int64_t steps, double loss, double slope) {
    constexpr std::size_t n = 60;
    Tensors start;
    for (std::size_t i = 0; i < n; ++i)
      start.push_back(tensor(0.1 * static_cast<double>(i + 1) / n, f64));
    const Tensor us = sin(0.1 * arange(steps, f64));
    Both f(
        [&](const Tensor& w) {
          return with_gradients(
              [&] {
                const Tensors all = scan(
                    [w](std::span<const Tensor> in) {
                      const Tensor& u = in[n];
                      Tensors next;
                      for (std::size_t i = 0; i < n; ++i)
                        next.push_back(in[i] + 0.05 * tanh(w * u + in[(i + 1) % n] - in[i]));
                      next.push_back(square(next[0] - u));
                      return next;
                    },
                    start, {us});
                return sum(all[n]);
              },
              w);
        },
        1);   // 60 terms of each step add up in another order
    f.check({{loss}, {slope}}, tensor(0.7, f64));
  };
  run(20, 6.059958449047213, -5.193945538367617);
  run(614, 397.85271133820834, 208.19346726530364);
}

TEST_CASE("scan-inputs-are-not-copied: the gradient reads what is scanned, and the outputs",
          "[recorded][loops][memory]") {
  const auto run = [](const Tensor& xs, const Tensor& w) {
    return with_gradients(
        [&] {
          const auto [last, all] = scan([](const Tensor& s, const Tensor& x) { return std::pair(x * s, s); },
                                        {ones({xs.shape()[1], xs.shape()[2]}, f64)}, {xs});
          return sum(all * w) + sum(last);
        },
        xs);
  };
  Both f(run);
  f.check(
      {{0.832368}, {-0.507, 1.235, -0.6568, -0.65, -0.7068, 0.13, 0.0288, -0.296, -0.076, 0.2158, 0.1044, 0}},
      tensor({{{-0.76, 0.26}, {-0.36, 0.37}}, {{0.1, 0.83}, {-0.29, -0.0}}, {{-0.04, -0.38}, {-0.72, 0.03}}},
             f64),
      tensor({{{-0.69, -0.4}, {0.57, 0.65}}, {{-0.6, 0.82}, {-0.68, -0.65}}, {{0.97, 0.88}, {0.64, -0.83}}},
             f64));
  const Variable xs(ones({37, 4, 8}, f64)), w(ones({37, 4, 8}, f64));
  const std::vector<std::string> loops = loops_of([=] { return run(xs, w); });
  REQUIRE(loops.size() == 2);
  CHECK(stacks(loops[0], 37) == 1);   // the outputs
  CHECK(stacks(loops[1], 37) == 1);   // the gradient
}

TEST_CASE("scan-input-is-output", "[recorded][loops]") {
  Both f([](const Tensor& xs) {
    GradientTape tape;
    tape.watch(xs);
    const auto [last, all] =
        scan([](const Tensor& c, const Tensor& x) { return std::pair(c + 1, x); }, {zero()}, {xs});
    return Tensors{last, all, tape.gradient(sum(all * tensor({1.0, 2.0, 3.0}, f64)), xs).dense()};
  });
  f.check({{3}, {0, 1, 2}, {1, 2, 3}}, tensor({0.0, 1.0, 2.0}, f64));
}

// What random programs have found

TEST_CASE("ops of constants in a step, a body and a branch have values", "[recorded][loops]") {
  const Tensor d = tensor({1.0, 2.0}, f64);
  const auto next = [d](const Tensor& v) {
    GradientTape tape;
    tape.watch(v);
    const Tensor slope = tape.gradient(sum(v), v).dense();   // 1, which is broadcast
    const Tensor one = ones_like(d)[0], four = sum(matmul(reshape(d, {1, 2}), reshape(reverse(d), {2, 1})));
    return v + slope + one + four + sum(broadcast_to(gather(d, tensor(0)), {3}));
  };
  const Tensor x = tensor(0.5, f64);
  Both([&](const Tensor& v) { return Tensors{scan(next, {v}, {}, {.length = 2})}; }).check({{18.5}}, x);
  Both([&](const Tensor& v) {
    return Tensors{while_loop([](const Tensor& t) { return t < 10; }, next, {v}, {.maximum_iterations = 9})};
  }).check({{18.5}}, x);
  Both([&](const Tensor& v) {
    return Tensors{cond(v > 0, {v}, next, [](const Tensor& t) { return t; })};
  }).check({{9.5}}, x);
}

TEST_CASE("a captured tensor without influence has no gradient", "[recorded][loops]") {
  Both f([](const Tensor& x, const Tensor& w, const Tensor& u) {
    GradientTape tape;
    tape.watch(x, w, u);
    const Tensor y = scan([w, u](const Tensor& v) { return where(w > 0, v * 2, v) * stop_gradient(u); }, {x},
                          {}, {.length = 2});
    const auto [dx, dw, du] = tape.gradient(y, x, w, u);
    return Tensors{dx.dense(), tensor(dw.defined() ? 1 : 0), tensor(du.defined() ? 1 : 0)};
  });
  f.check({{36}, {0}, {0}}, tensor(1.0, f64), tensor(2.0, f64), tensor(3.0, f64));
}

TEST_CASE("a carry that the target does not depend on adds no zeros times infinity", "[recorded][loops]") {
  for (const bool is_scan : {true, false}) {
    CAPTURE(is_scan);
    Both f([is_scan](const Tensor& x, const Tensor& w) {
      return with_gradients(
          [&] {
            const auto step = [w](const Tensor& a, const Tensor& b) { return std::pair(a * w, b * 2); };
            if (is_scan) return scan(step, {x, x * 1.0}, {}, {.length = 2}).second;
            return while_loop([](const Tensor&, const Tensor& b) { return b < 100; }, step, {x, x * 1.0},
                              {.maximum_iterations = 2})
                .second;
          },
          {x, w});
    });
    f.check({{2}, {4}, {0}}, tensor(0.5, f64), tensor(INFINITY, f64));
    f.check({{2}, {4}, {0}}, tensor(0.5, f64), tensor(-2.0, f64));
  }
}

}   // namespace loops_test
