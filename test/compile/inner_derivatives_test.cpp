// Derivatives of recorded branches and loops in rarer cases: several sources, results without cotangents,
// cotangents that are sources, variables that change, any number of steps.
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>

#include "closeness.h"
#include "message_of.h"
#include "tapedeck/compile.h"
#include "tapedeck/control.h"
#include "tapedeck/memory.h"
#include "tapedeck/tapedeck.h"

namespace inner_derivatives_test {

using namespace tapedeck;
using test::message_of;

namespace {

using Tensors = std::vector<Tensor>;
constexpr DType f64 = DType::f64, i64 = DType::i64;

Tensor number(double x) { return tensor(x, f64); }

// Checks that f has the same bits eagerly, recorded, and in a replay, always from the same values of these
// variables, which end with the same values. Returns the results.
template <class F, class... X>
Tensors check_both(const F& f, const std::vector<Variable>& variables, const X&... x) {
  const Tensors before(variables.begin(), variables.end());
  const auto recorded = compile(f);
  const auto run = [&](const auto& g) {
    for (std::size_t k = 0; k < before.size(); ++k)
      variables[k].assign(before[k]);
    Tensors y = g(x...);
    y.insert(y.end(), variables.begin(), variables.end());
    return y;
  };
  const Tensors eager = run(f);
  for (const char* call : {"first", "second"}) {
    CAPTURE(call);
    const Tensors y = run(recorded);
    REQUIRE(y.size() == eager.size());
    for (std::size_t k = 0; k < y.size(); ++k) {
      CAPTURE(k, y[k], eager[k]);
      CHECK(same_bits(y[k], eager[k]));
    }
  }
  CHECK(recorded.programs().at(0).calls == 1);
  return eager;
}
std::vector<double> numbers(const Tensors& x) {
  std::vector<double> all;
  for (const Tensor& t : x)
    for (const double v : t.to_vector())
      all.push_back(v);
  return all;
}
using Numbers = std::vector<double>;

// d/dx of f, by a tape of its own, so that calls nest.
template <class F> Tensor derivative(const F& f, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(f(x), x, {.unconnected = UnconnectedGradients::zero}).dense();
}

}   // namespace

TEST_CASE("a result of a branch without a cotangent adds no zeros times infinity", "[recorded][branches]") {
  const auto f = [](const Tensor& p, const Tensor& x, const Tensor& w) {
    const auto squares = [&](const Tensor& a) {
      return cond(
          p, {a, w},
          [](const Tensor& u, const Tensor& v) { return std::tuple(tensor(1, i64), u * v, u * u); },
          [](const Tensor& u, const Tensor& v) { return std::tuple(tensor(2, i64), v, 3 * u); });
    };
    const auto square = [&](const Tensor& a) { return std::get<2>(squares(a)); };
    return Tensors{square(x), derivative(square, x),
                   derivative([&](const Tensor& a) { return derivative(square, a); }, x),
                   derivative([&](const Tensor& a) { return std::get<1>(squares(a)); }, x)};
  };
  CHECK(numbers(check_both(f, {}, tensor(true), number(3), number(INFINITY))) == Numbers{9, 6, 2, INFINITY});
  CHECK(numbers(check_both(f, {}, tensor(false), number(3), number(INFINITY))) == Numbers{9, 3, 0, 0});
}

TEST_CASE("a gradient in a branch that does not read its cotangent", "[recorded][branches]") {
  const auto square =
      custom_gradient([](const Tensor& x) { return std::pair(2 * x, [x](const Tensor&) { return x * x; }); });
  const auto f = [&](const Tensor& p, const Tensor& x) {
    return Tensors{derivative(
        [&](const Tensor& a) { return cond(p, {a}, square, [](const Tensor& u) { return 5 * u; }); }, x)};
  };
  CHECK(numbers(check_both(f, {}, tensor(true), number(3))) == Numbers{9});
  CHECK(numbers(check_both(f, {}, tensor(false), number(3))) == Numbers{5});
}

TEST_CASE("a result that is undefined in one branch only is an error", "[recorded][branches][errors]") {
  const auto f = compile([](const Tensor& p, const Tensor& x) {
    return cond(
        p, {x},
        [](const Tensor& a) {
          return Tensors{a, Tensor(), a};
        },
        [](const Tensor& a) {
          return Tensors{a, a, a};
        });
  });
  CHECK_THAT(message_of<ArgumentError>([&] { f(tensor(true), number(1)); }),
             Catch::Contains("cond: output 1 is undefined in one branch only"));
}

TEST_CASE("the gradient of a branch or a loop is differentiated with respect to its cotangent",
          "[recorded][branches][loops]") {
  const auto f = [](const Tensor& p, const Tensor& x, const Tensor& d) {
    const auto slope = [&](const auto& g) {
      GradientTape outer;
      outer.watch(d);
      GradientTape tape;
      tape.watch(x);
      return outer.gradient(tape.gradient(g(x), x, {.output_gradients = {d}}), d).dense();
    };
    return Tensors{slope([&](const Tensor& a) {
                     return cond(
                         p, {a}, [](const Tensor& u) { return u * u; },
                         [](const Tensor& u) { return 3 * u; });
                   }),
                   slope([](const Tensor& a) {
                     return scan([](const Tensor& u) { return u * u; }, {a}, {}, {.length = 2});
                   })};
  };
  CHECK(numbers(check_both(f, {}, tensor(true), number(3), number(7))) == Numbers{6, 108});
  CHECK(numbers(check_both(f, {}, tensor(false), number(3), number(7))) == Numbers{3, 108});
}

TEST_CASE("derivatives of a branch or a loop do not assign its variables again",
          "[recorded][branches][loops]") {
  const Variable v(number(0));
  const auto f = [v](bool is_loop) {
    return [v, is_loop](const Tensor& p, const Tensor& x) {
      const auto step = [v](const Tensor& u) {
        v.assign(2 * u);
        return u * u;
      };
      GradientTape outer, tape;
      outer.watch(x), tape.watch(x);
      const ForwardAccumulator forward(x, ones_like(x));
      const Tensor y = is_loop ? scan(step, {x}, {}, {.length = 2})
                               : cond(p, {x}, step, [](const Tensor& u) { return 3 * u; });
      v.assign(v + 1);
      const Tensor dx = tape.gradient(y, x).dense();
      return Tensors{y, forward.jvp(y).dense(), dx,
                     outer.gradient(dx, x, {.unconnected = UnconnectedGradients::zero}).dense()};
    };
  };
  CHECK(numbers(check_both(f(false), {v}, tensor(true), number(3))) == Numbers{9, 6, 6, 2, 7});
  v.assign(number(0));
  CHECK(numbers(check_both(f(false), {v}, tensor(false), number(3))) == Numbers{9, 3, 3, 0, 1});
  v.assign(number(0));
  CHECK(numbers(check_both(f(true), {v}, tensor(true), number(3))) == Numbers{81, 108, 108, 108, 19});
}

TEST_CASE("a variable that a branch or a loop reads is updated before its derivatives",
          "[recorded][branches][loops][errors]") {
  const Variable v(number(2));
  const auto f = [v](bool is_loop, int order) {
    return [=](const Tensor& p, const Tensor& x) {
      const auto step = [v](const Tensor& u) { return u * u * v; };
      std::optional<GradientTape> outer;
      if (order > 1) outer.emplace().watch(x);
      GradientTape tape;
      tape.watch(x);
      const Tensor y = is_loop ? scan(step, {x}, {}, {.length = 2})
                               : cond(p, {x}, step, [](const Tensor& u) { return 3 * u; });
      v.assign(v * 10);
      const Tensor dx = tape.gradient(y, x).dense();
      return outer ? Tensors{outer->gradient(dx, x).dense()} : Tensors{dx};
    };
  };
  CHECK(numbers(check_both(f(false, 1), {v}, tensor(true), number(3))) == Numbers{12, 20});
  v.assign(number(2));
  CHECK(numbers(check_both(f(true, 1), {v}, tensor(true), number(3))) == Numbers{864, 20});
  for (const bool is_loop : {false, true}) {
    v.assign(number(2));
    CHECK_THAT(message_of<GradientError>([&] { compile(f(is_loop, 2))(tensor(true), number(3)); }),
               Catch::Contains("has been updated since the forward pass"));
  }
}

TEST_CASE("tangents of carries, entries and captured tensors of a scan", "[recorded][loops]") {
  const auto f = [](const Tensors& x, const Tensors& dx) {
    const ForwardAccumulator forward(Sources{x[0], x[1], x[2], x[3], x[4]}, dx);
    const auto [a, b, all] =
        scan([w = x[4]](const Tensor& s, const Tensor& t, const Tensor& u,
                        const Tensor& v) { return std::tuple(s * u + t, t * v + w, sin(s) * t * w); },
             {x[0], x[1]}, {x[2], x[3]});
    return Tensors{a, b, all, forward.jvp(a).dense(), forward.jvp(b).dense(), forward.jvp(all).dense()};
  };
  const Tensors x = {number(0.5), number(-0.25), tensor({1.5, 0.5, -1.0}, f64), tensor({0.25, 2.0, 1.0}, f64),
                     number(0.75)};
  const Tensors zero = {zeros({}, f64), zeros({}, f64), zeros({3}, f64), zeros({3}, f64), zeros({}, f64)};
  for (std::size_t k = 0; k <= x.size(); ++k) {
    CAPTURE(k);
    Tensors dx = zero;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (k == i || k == x.size()) dx[i] = x[i] + 1;
    check_both(f, {}, x, dx);
  }
}

TEST_CASE("a sum of negative zeros in a loop is a negative zero", "[recorded][loops]") {
  const auto f = [](const Tensor& w, const Tensor& xs) {
    return Tensors{derivative(
        [&](const Tensor& u) {
          return scan([u](const Tensor& c, const Tensor& x) { return c + x * u; }, {number(1)}, {xs});
        },
        w)};
  };
  CHECK(std::signbit(check_both(f, {}, number(2), -zeros({3}, f64))[0].item()));
}

TEST_CASE("an output of a scan without a cotangent adds no zeros times infinity to second derivatives",
          "[recorded][loops]") {
  const auto f = [](const Tensor& x, const Tensor& w) {
    const auto last = [&](const Tensor& a) {
      return scan([w](const Tensor& c) { return std::pair(c * c, c * w); }, {a}, {}, {.length = 2}).first;
    };
    return Tensors{last(x), derivative(last, x),
                   derivative([&](const Tensor& a) { return derivative(last, a); }, x)};
  };
  CHECK(numbers(check_both(f, {}, number(2), number(INFINITY))) == Numbers{16, 32, 48});
}

TEST_CASE("scans of any number of steps, from either end, with outputs of any size", "[recorded][loops]") {
  // 72 bytes of an output are copied to their place, 64 are written there.
  for (const std::int64_t width : {1, 8, 9})
    for (const bool reverse : {false, true})
      for (const std::int64_t steps : {1, 2, 31, 32, 33, 62, 63, 64, 65, 70})
        for (const std::int64_t snapshots : {0, 3}) {
          CAPTURE(width, reverse, steps, snapshots);
          const auto f = [=](const Tensor& c, const Tensor& xs) {
            GradientTape tape;
            tape.watch(c, xs);
            const auto [last, all] =
                scan([](const Tensor& u, const Tensor& x) { return std::pair(0.5 * u + x, u * x); }, {c},
                     {xs}, {.reverse = reverse, .snapshots = snapshots});
            const auto [dc, dx] = tape.gradient(last + sum(all, 0), c, xs);
            return Tensors{last, all, dc.dense(), dx.dense()};
          };
          const Tensor xs = sin(reshape(arange(steps * width, f64), {steps, width}));
          check_both(f, {}, ones({width}, f64), xs);
        }
}

TEST_CASE("a recorded while_loop with snapshots keeps few states", "[recorded][loops][memory]") {
  const Tensor x = full({512}, 0.5, f64);
  const auto f = compile([x](const Tensor& n) {
    return derivative(
        [n](const Tensor& a) {
          return while_loop([n](const Tensor&, const Tensor& i) { return i < n; },
                            [](const Tensor& t, const Tensor& i) { return std::pair(tanh(t), i + 1); },
                            {a, tensor(0, i64)}, {.snapshots = 6})
              .first;
        },
        x * 1.0);
  });
  const auto peak = [&](std::int64_t steps) {
    const Tensor n = tensor(steps, i64);
    f(n);
    const std::int64_t before = live_bytes();
    reset_peak_memory();
    f(n);
    return (peak_memory() - before) / x.nbytes();
  };
  const std::int64_t few = peak(20);
  CHECK(peak(200) <= few + 2);
}

TEST_CASE("too few snapshots for a recorded while_loop are an error",
          "[recorded][loops][snapshots][errors]") {
  const auto f = compile([](const Tensor& x, const Tensor& n) {
    return derivative(
        [n](const Tensor& a) {
          return while_loop([n](const Tensor&, const Tensor& i) { return i < n; },
                            [](const Tensor& t, const Tensor& i) { return std::pair(t * 1.0, i + 1); },
                            {a, tensor(0, i64)}, {.snapshots = 1})
              .first;
        },
        x);
  });
  CHECK(f(number(1), tensor(101, i64)).item() == 1);
  CHECK_THAT(message_of<ArgumentError>([&] { f(number(1), tensor(102, i64)); }),
             Catch::Contains("would run some of them 101 times; use 2 or more"));
  CHECK(f(number(1), tensor(3, i64)).item() == 1);
}

TEST_CASE("variables that a branch or a step assigns and then reads have gradients",
          "[recorded][branches][loops]") {
  const Variable v(number(2));
  const auto f = [v](const Tensor& p, const Tensor& x) {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    const Tensor y = cond(
        p, {x},
        [v](const Tensor& u) {
          v.assign(3 * u);
          return u * v;
        },
        [](const Tensor& u) { return u; });
    tape.stop();
    const GradientOptions zero{.unconnected = UnconnectedGradients::zero};
    return Tensors{y, tape.gradient(y, x, zero).dense(), tape.gradient(y, v, zero).dense()};
  };
  check_both(f, {v}, tensor(true), number(5));
  check_both(f, {v}, tensor(false), number(5));
}

}   // namespace inner_derivatives_test
