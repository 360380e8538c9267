// map: a user's elementwise function as one op. It is compared with the same lambda on Tensors,
// differentiated op by op, and with closed forms.
#include <catch2/catch.hpp>
#include <limits>

#include "closeness.h"
#include "core/sanitizers.h"
#include "message_of.h"
#include "ops/sample_inputs.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/map.h"
#include "tapedeck/tapedeck.h"

namespace map_test {

using namespace tapedeck;
using samples::f64, samples::uniform;
using test::message_of;
using Tensors = std::vector<Tensor>;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

constexpr auto damped = [](auto x, auto a, auto b) { return a * exp(-b * x * x); };

template <class F> Tensor mapped(const F& f, const Tensors& x) {
  if constexpr (std::is_invocable_v<F, Tensor>)
    return map(f, x[0]);
  else if constexpr (std::is_invocable_v<F, Tensor, Tensor>)
    return map(f, x[0], x[1]);
  else
    return map(f, x[0], x[1], x[2]);
}
template <class F> Tensor by_ops(const F& f, const Tensors& x) {
  if constexpr (std::is_invocable_v<F, Tensor>)
    return f(x[0]);
  else if constexpr (std::is_invocable_v<F, Tensor, Tensor>)
    return f(x[0], x[1]);
  else
    return f(x[0], x[1], x[2]);
}

// The value, then its tangent for the given tangents of all inputs, then the gradients for the given
// cotangent.
template <class F> Tensors everything(const F& f, const Tensors& x, const Tensor& dy, const Tensors& dx) {
  Tensor tangent;
  {
    const ForwardAccumulator forward(
        x, dx);   // not around the tape: then the backward pass would be recorded, and run as ops
    const Tensor y = f(x);
    tangent = forward.jvp(y).tensor();
    if (!tangent.defined()) tangent = zeros_like(y);
  }
  GradientTape tape;
  for (const Tensor& t : x)
    tape.watch(t);
  const Tensor y = f(x);
  Tensors all = {y, tangent};
  for (Gradient& g : tape.gradient(
           Targets{y}, Sources(x),
           {.output_gradients = std::vector<Tensor>{dy}, .unconnected = UnconnectedGradients::zero}))
    all.push_back(g.dense());
  return all;
}

// Derivatives by ops may be NaN where those of a map are not, because they multiply zeros by NaN or infinity.
bool close(const Tensor& a, const Tensor& b, double tolerance, bool derivative = false) {
  if (a.spec() != b.spec()) return false;
  const std::vector<double> u = a.to_vector(), v = b.to_vector();
  for (std::size_t i = 0; i < u.size(); ++i)
    if (derivative && std::isnan(v[i]))
      continue;
    else if (std::isnan(u[i]) != std::isnan(v[i]) ||
             (u[i] != v[i] && std::abs(u[i] - v[i]) > tolerance * (1 + std::abs(v[i]))))
      return false;
  return true;
}

// Checks that the fused passes agree with the ops.
template <class F> void check_like_ops(const F& f, const Tensors& x, double tolerance) {
  Tensors dx;
  for (std::size_t i = 0; i < x.size(); ++i)
    dx.push_back(astype(uniform(x[i].shape(), -1, 1, static_cast<int>(i) + 7), x[i].dtype()));
  const Tensor dy = astype(uniform(by_ops(f, x).shape(), -1, 1, 20), x[0].dtype());
  const Tensors expected = everything([&](const Tensors& t) { return by_ops(f, t); }, x, dy, dx);
  const Tensors actual = everything([&](const Tensors& t) { return mapped(f, t); }, x, dy, dx);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i, actual[i], expected[i]);
    CHECK(close(actual[i], expected[i], tolerance));
  }
}

// The same for each of several results, in both dtypes.
template <class F, class... X> void check_functions(const F& f, const X&... x) {
  const auto check = [&](double tolerance, const auto&... t) {
    const Tensors inputs = {t...};
    const auto as_list = [](const auto& y) {
      return std::apply([](const auto&... v) { return Tensors{v...}; }, y);
    };
    const auto derivatives = [&](const auto& g) {
      Tensors all;
      for (std::size_t k = 0; k < std::tuple_size_v<decltype(map(f, t...))>; ++k) {
        Tensors dx;
        for (const Tensor& i : inputs)
          dx.push_back(astype(uniform(i.shape(), 0.5, 2, 7), i.dtype()));   // nowhere 0
        const Tensor dy = astype(uniform(inputs[0].shape(), 0.5, 2, 9), inputs[0].dtype());
        for (Tensor& t : everything([&](const Tensors&) { return as_list(g())[k]; }, inputs, dy, dx))
          all.push_back(std::move(t));
      }
      return all;
    };
    const Tensors expected = derivatives([&] { return f(t...); }),
                  actual = derivatives([&] { return map(f, t...); });
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i, actual[i], expected[i]);
      CHECK(close(actual[i], expected[i], tolerance, i % (2 + inputs.size()) != 0));
    }
  };
  check(1e-14, x...);
  check(2e-6, astype(x, DType::f32)...);
}

}   // namespace

TEST_CASE("a lambda over several tensors is one op, with values and derivatives in closed form", "[map]") {
  const Tensor x = f64({-2, -0.5, 0, 1, 3}), a = f64({1, 2, 3, -1, 0.5}), b = f64({0.25, 1, 2, 0.5, 0.125});
  GradientTape tape;
  for (const Tensor& t : {x, a, b})
    tape.watch(t);
  const Tensor y = map(damped, x, a, b);
  REQUIRE(tape.size() == 1);
  CHECK(tape.recorded()[0].name == "map");
  CHECK(tape.recorded()[0].inputs == 3);
  const auto [dx, da, db] = tape.gradient(y, x, a, b);
  for (std::int64_t i = 0; i < 5; ++i) {
    const double xi = x.at({i}), ai = a.at({i}), bi = b.at({i}), e = std::exp(-bi * xi * xi);
    CHECK(y.at({i}) == Approx(ai * e));
    CHECK(dx.dense().at({i}) == Approx(-2 * ai * bi * xi * e).margin(1e-300));
    CHECK(da.dense().at({i}) == Approx(e));
    CHECK(db.dense().at({i}) == Approx(-ai * xi * xi * e).margin(1e-300));
  }
}

TEST_CASE("map: derivatives agree with differences, in both modes and to second order", "[map]") {
  const auto of = [](const Tensors& x) { return map(damped, x[0], x[1], x[2]); };
  CHECK(check_gradients(of, {uniform({5}, -1, 1), uniform({5}, 0.5, 2, 1), uniform({5}, 0.5, 1, 2)}));
  CHECK(check_gradients(of, {uniform({2, 1, 3}, -1, 1), uniform({4, 1}, 0.5, 2, 1), uniform({}, 0.5, 1, 2)}));
  const auto two = [](const Tensors& x) {
    const auto [s, c] = map([](auto r, auto t) { return std::tuple(r * sin(t), r * cos(t)); }, x[0], x[1]);
    return s * c + square(s);
  };
  CHECK(check_gradients(two, {uniform({3, 1}, 0.5, 2), uniform({2}, -1, 1, 1)}));
  const Tensor x = uniform({4}, 0.5, 2);
  CHECK(check_gradients(
      [](const Tensors& t) { return map([](auto u, auto v) { return u * log(v); }, t[0], t[0]); }, {x}));
}

TEST_CASE("map: third derivatives", "[map]") {
  const Tensor x = tensor(0.5, DType::f64);
  GradientTape third;
  third.watch(x);
  Tensor second;
  {
    GradientTape middle;
    middle.watch(x);
    Tensor first;
    {
      GradientTape inner;
      inner.watch(x);
      first = inner.gradient(map([](auto t) { return sin(2 * t); }, x), x).dense();
    }
    second = middle.gradient(first, x).dense();
  }
  CHECK(second.item() == Approx(-4 * std::sin(1.0)));
  CHECK(third.gradient(second, x).dense().item() == Approx(-8 * std::cos(1.0)));
}

TEST_CASE("functions in a map have the values and derivatives of the ops", "[map]") {
  const Tensor all = f64({-3, -1.75, -0.5, -0.0, 0.25, 1, 2.5, 7, kNan, -20, 15});
  check_functions(
      [](auto x) { return std::tuple(-x, x + 3, x - 2.5, 1 - x, 2 / x, x / 3, square(x), reciprocal(x)); },
      all);
  check_functions(
      [](auto x) {
        return std::tuple(abs(x), sign(x) * x, floor(x) * x, ceil(x) * x, trunc(x) * x, round(x) * x, relu(x),
                          erfc(x));
      },
      all);
  check_functions(
      [](auto x) { return std::tuple(cbrt(x), exp(x), exp2(x), expm1(x), sin(x), cos(x), tan(x), atan(x)); },
      all);
  check_functions(
      [](auto x) {
        return std::tuple(sinh(x), cosh(x), tanh(x), asinh(x), sigmoid(x), log_sigmoid(x), softplus(x),
                          erf(x));
      },
      all);
  check_functions(
      [](auto x) {
        return std::tuple(maximum(x, 1), minimum(0.25, x), clip(x, -0.5, 1), where(x > 0, 2 * x, 3),
                          where(logical_or(x < -1, equal(x, 1)), x, -x),
                          where(logical_and(x <= 1, logical_not(x >= 2)), 5, x),
                          where(not_equal(x, 1), x, 1) * where(less(x, 2), 1, 0), pow(x, 3));
      },
      all);
  check_functions(
      [](auto x) {
        return std::tuple(where(less_equal(x, 1), x, 2 * x), where(greater(x, 1), x, 2 * x),
                          where(greater_equal(x, 1), x, 2 * x), pow(2, x));
      },
      all);
  check_functions(
      [](auto x) {
        return std::tuple(sqrt(x), rsqrt(x), log(x), log1p(x), log2(x), log10(x), acosh(1 + x), pow(x, 0.5));
      },
      f64({0.25, 0.5, 1, 2, 9, 1000, kInfinity, 1e-3}));
  check_functions([](auto x) { return std::tuple(asin(x), acos(x), atanh(x)); },
                  f64({-0.75, -0.25, 0, 0.5, 0.875}));
  check_functions(
      [](auto a, auto b) {
        return std::tuple(a + b, a - b, a * b, maximum(a, b), minimum(a, b), hypot(a, b), logaddexp(a, b),
                          squared_difference(a, b));
      },
      f64({-1.5, -0.5, 0.25, 2, 0, 3}), f64({2, -0.5, 0.75, 2, 0, kNan}));
  check_functions([](auto a, auto b) { return std::tuple(a / b, atan2(a, b), pow(a, b)); },
                  f64({1.5, 0.5, 0.25, 2, 3}), f64({2, -0.5, 0.75, 2, -1}));
}

TEST_CASE("derivatives of a map have the bits of the ops where both compute the same quotients", "[map]") {
  const auto check = [](const auto& f, const Tensors& x, std::size_t i) {
    const auto gradient = [&](const auto& y) {
      GradientTape tape;
      tape.watch(x[i]);
      return tape.gradient(y(f, x), x[i]).dense();
    };
    CHECK(same_bits(gradient([](const auto& g, const Tensors& t) { return mapped(g, t); }),
                    gradient([](const auto& g, const Tensors& t) { return by_ops(g, t); })));
  };
  for (const DType t : {DType::f32, DType::f64}) {
    const Tensor positive = astype(uniform({100}, 0.01, 90), t), negative = astype(f64({-3, -1, -0.0, 0}), t);
    check([](auto x) { return log(x); }, {positive}, 0);
    check([](auto x) { return log2(x); }, {positive}, 0);
    check([](auto x) { return log10(x); }, {positive}, 0);
    check([](auto x) { return log1p(x); }, {positive}, 0);
    check([](auto a, auto b) { return pow(a, b); }, {negative, astype(f64({2, 1, 3, 0.5}), t)}, 1);
  }
}

TEST_CASE("map: operands of every shape that broadcast", "[map]") {
  const std::vector<std::vector<Shape>> shapes = {{{}, {}, {}},
                                                  {{7}, {}, {}},
                                                  {{}, {1}, {33}},
                                                  {{5, 7}, {7}, {5, 1}},
                                                  {{5, 1}, {1, 40}, {}},
                                                  {{2, 1, 3}, {4, 1}, {3}},
                                                  {{3, 16}, {3, 1}, {16}},
                                                  {{0, 3}, {3}, {}},
                                                  {{4, 0}, {4, 1}, {1}},
                                                  {{300, 100}, {100}, {300, 1}},
                                                  {{2, 20000}, {2, 1}, {}},
                                                  {{1, 1}, {2, 1, 1}, {1}},
                                                  {{70, 3, 90}, {3, 1}, {70, 1, 90}}};
  for (const std::vector<Shape>& s : shapes) {
    const Tensors x = {uniform(s[0], -1, 1), uniform(s[1], 0.5, 2, 1), uniform(s[2], 0.5, 1, 2)};
    CAPTURE(to_string(s[0]), to_string(s[1]), to_string(s[2]));
    check_like_ops(damped, x, 1e-11);
    check_like_ops(damped, {astype(x[0], DType::f32), astype(x[1], DType::f32), astype(x[2], DType::f32)},
                   2e-3);
  }
}

TEST_CASE("map: rows of every length", "[map]") {
  for (std::int64_t n = 1; n < 70; ++n)
    check_like_ops(damped, {uniform({3, n}, -1, 1), uniform({n}, 0.5, 2, 1), uniform({3, 1}, 0.5, 1, 2)},
                   1e-13);
}

TEST_CASE("an element of a map has the same bits at any position", "[map]") {
  const auto f = [](auto x) { return tanh(x) * sin(x) + pow(x, 2); };
  const Tensor x = astype(uniform({41}, -4, 4), DType::f32), y = map(f, x);
  for (std::int64_t i = 0; i < 41; ++i)
    CHECK(map(f, tensor(x.at<float>({i}))).at<float>({}) == y.at<float>({i}));
}

TEST_CASE("a map of several results", "[map]") {
  const Tensor x = f64({0.5, 1, 2}), a = f64(3.0);
  GradientTape tape;
  tape.watch(x);
  const std::array<Tensor, 3> y = map([](auto u, auto v) { return std::tuple(u * v, 2.0, log(u)); }, x, a);
  REQUIRE(tape.size() == 1);
  CHECK(tape.recorded()[0].outputs == 3);
  CHECK(y[0].to_vector() == std::vector<double>{1.5, 3, 6});
  CHECK(y[1].to_vector() == std::vector<double>{2, 2, 2});
  CHECK(y[2].at({1}) == 0);
  const Tensor dx = tape.gradient(Targets{y[0], y[1], y[2]}, Sources(x))[0].dense();
  for (std::int64_t i = 0; i < 3; ++i)
    CHECK(dx.at({i}) == Approx(3 + 1 / x.at({i})));
  const auto [s, c] = map([](auto u) { return std::array{sin(u), cos(u)}; }, x);
  CHECK(worst(s * s + c * c, ones_like(x)) < 1e-15);
  const std::array<Tensor, 1> alone = map([](auto u) { return std::array{u + 1}; }, x);
  CHECK(alone[0].at({0}) == 1.5);
}

TEST_CASE("an unused result of a map does not affect the gradient", "[map]") {
  const Tensor x = f64({0, 4});
  GradientTape tape;
  tape.watch(x);
  const auto [twice, root] = map([](auto u) { return std::pair(2 * u, sqrt(u)); }, x);
  CHECK(tape.gradient(twice, x).dense().to_vector() == std::vector<double>{2, 2});
}

TEST_CASE("where() in a map selects derivatives too, so the other branch may be infinite", "[map]") {
  const auto f = [](auto x) { return where(x > 0, sqrt(x), 0); };
  const Tensor x = f64({0, 4});
  GradientTape outer;
  outer.watch(x);
  Tensor recorded;
  {
    GradientTape tape;
    tape.watch(x);
    recorded = tape.gradient(map(f, x), x).dense();
  }
  CHECK(recorded.to_vector() == std::vector<double>{0, 0.25});
  GradientTape tape;
  tape.watch(x);
  const StopRecording pause(outer);
  CHECK(tape.gradient(map(f, x), x).dense().to_vector() == std::vector<double>{0, 0.25});
}

TEST_CASE("a map computes only requested gradients, and zeros for inputs without influence", "[map]") {
  const Tensor x = uniform({3, 20}, -1, 1), a = uniform({20}, 0.5, 2, 1), b = uniform({3, 1}, 0.5, 1, 2);
  const auto gradient = [&](const Tensors& sources) {
    GradientTape tape;
    for (const Tensor& t : sources)
      tape.watch(t);
    return tape.gradient(Targets{map(damped, x, a, b)}, Sources(sources));
  };
  const std::vector<Gradient> all = gradient({x, a, b});
  for (std::size_t i = 0; i < 3; ++i) {
    const Tensor& source = i == 0 ? x : i == 1 ? a : b;
    CHECK(same_bits(gradient({source})[0].dense(), all[i].dense()));
  }
  GradientTape tape;
  tape.watch(b);
  const Tensor y = map([](auto u, auto) { return u * u; }, x, b);
  CHECK(same_bits(tape.gradient(y, b).dense(), zeros_like(b)));
}

TEST_CASE("ops that map.h overloads can be passed by name", "[map]") {
  const Tensor x = samples::f64({-2, 3});
  CHECK(grad(tapedeck::abs, x).dense().to_vector() == std::vector<double>{-1, 1});
  CHECK(grad(tapedeck::abs, {x})[0].dense().to_vector() == std::vector<double>{-1, 1});
  CHECK(value_and_grad(tapedeck::square, x).second.dense().to_vector() == std::vector<double>{-4, 6});
  CHECK(vjp(tapedeck::abs, x).second()[0].dense().to_vector() == std::vector<double>{-1, 1});
  CHECK(jvp(tapedeck::abs, x, x).to_vector() == std::vector<double>{2, 3});
  CHECK(jacobian(tapedeck::abs, x).to_vector() == std::vector<double>{-1, 0, 0, 1});
  CHECK(hessian_vector_product(tapedeck::square, tensor(3.0), tensor(2.0)).item() == 4);
}

TEST_CASE("a map accepts eight operands: tensors, numbers and variables", "[map]") {
  const Tensors x = {f64(1.0), f64({1, 2}), reshape(f64({1, 3}), {2, 1}), f64(4.0), f64(5.0), f64({6, 7}),
                     f64(8.0), f64(9.0)};
  GradientTape tape;
  for (const Tensor& t : x)
    tape.watch(t);
  const Tensor y = map([](auto a, auto b, auto c, auto d, auto e, auto f, auto g,
                          auto h) { return a * b * c + d * e - f / g + h * h; },
                       x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
  CHECK(y.shape() == Shape{2, 2});
  CHECK(y.at({1, 1}) == 6 + 20 - 7.0 / 8 + 81);
  const std::vector<Gradient> g = tape.gradient(Targets{y}, Sources(x));
  CHECK(g[0].dense().item() == 1 + 2 + 3 + 6);
  CHECK(g[5].dense().to_vector() == std::vector<double>{-0.25, -0.25});
  CHECK(g[7].dense().item() == 4 * 18);

  const Variable w(tensor({2.0, 3.0}));
  GradientTape of_variable;
  const Tensor z = map([](auto v, auto k) { return k * v * v; }, w, 0.5);
  CHECK(z.spec() == Spec{DType::f32, {2}});
  CHECK(of_variable.gradient(z, w).dense().to_vector() == std::vector<double>{2, 3});
}

TEST_CASE("a map's lambda may hold numbers, which the tape keeps", "[map]") {
  const Tensor x = f64({1, 2});
  GradientTape tape;
  tape.watch(x);
  Tensor y;
  {
    const std::vector<double> coefficients = {3, 0, 2};
    const double shift = 10;
    y = map(
        [coefficients, shift](auto t) {
          auto sum = coefficients[0] + 0 * t;
          for (std::size_t i = 1; i < coefficients.size(); ++i)
            sum = sum * t + coefficients[i];
          return sum + shift;
        },
        x);
  }
  CHECK(y.to_vector() == std::vector<double>{15, 24});
  CHECK(tape.gradient(y, x).dense().to_vector() == std::vector<double>{6, 12});
}

TEST_CASE("map: dtypes and errors", "[map]") {
  const auto f = [](auto a, auto b) { return a + b; };
  CHECK(map(f, tensor({1.0, 2.0}), f64({1, 2})).dtype() == DType::f64);
  CHECK(map(f, tensor({1.0, 2.0}), tensor({1, 2})).dtype() == DType::f64);
  CHECK(map(f, tensor({1.0, 2.0}), tensor({1.0, 0.0}) > 0).to_vector() == std::vector<double>{2, 2});
  CHECK(map([](auto a) { return where(a > 0, 1, 0); }, tensor({1.0, -2.0})).dtype() == DType::f32);
  CHECK(message_of([&] {
          map(f, tensor({1, 2}), tensor({3, 4}));
        }) == "map: takes f32, f64, f16 or bf16, use astype: input 0 is i32[2], input 1 is i32[2]");
  CHECK(message_of([&] { map(f, astype(tensor({1.0}), DType::c64), tensor({1.0})); }) ==
        "map: takes f32, f64, f16 or bf16, use astype: input 0 is c64[1], input 1 is c64[1]");
  CHECK(message_of([&] {
          map<"blend">(f, zeros({2, 3}), zeros({4}));
        }) == "blend: shapes do not broadcast: input 0 is f32[2,3], input 1 is f32[4]");
  CHECK_THROWS_AS(map(f, zeros({2, 3}), zeros({4})), ShapeError);
  CHECK_THROWS_AS(map(f, tensor(1), tensor(2)), DTypeError);
  CHECK_THROWS_AS(map(f, Tensor(), zeros({4})), ArgumentError);

  const Tensor x = tensor({1.0});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = map<"damped">(damped, x, 1.0, 1.0);
  CHECK(tape.recorded()[0].name == "damped");
}

TEST_CASE("a map overwrites memory only if it has no other owner", "[map]") {
  const auto f = [](auto a, auto b) { return 2 * a + b; };
  const Tensor x = ones({100, 50}), kept = x + 1;
  Tensor given = kept;
  const Tensor y = map(f, std::move(given), x);
  CHECK(worst(kept, full({100, 50}, 2)) == 0);
  CHECK(worst(y, full({100, 50}, 5)) == 0);
  CHECK(worst(map(f, x + 1, reshape(x + 2, {100, 50})), full({100, 50}, 7)) == 0);

  // The gradient of a may reuse the memory of the product's gradient, which has no other owner.
  for (const Shape& shape : {Shape{100, 50}, Shape{300, 111}, Shape{7}}) {
    const Tensors operands = {uniform(shape, -1, 1), uniform(shape, -1, 1, 1),
                              uniform({shape[shape.ndim() - 1]}, 0.5, 1, 2)};
    const auto gradients = [&](const auto& g) {
      GradientTape tape;
      for (const Tensor& t : operands)
        tape.watch(t);
      return tape.gradient(Targets{3 * g(operands[0], operands[1], operands[2])}, Sources(operands));
    };
    const auto of_three = [](auto u, auto v, auto w) { return u * v + u * w + v * v * w; };
    const std::vector<Gradient> actual = gradients([&](const auto&... t) { return map(of_three, t...); }),
                                expected = gradients(of_three);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(worst(actual[i].dense(), expected[i].dense()) < 1e-11);
  }

  const Tensor a = uniform({100, 50}, -1, 1), b = uniform({100, 50}, -1, 1, 1),
               dy = uniform({100, 50}, -1, 1, 2), before = dy + 0;
  GradientTape tape;
  tape.watch(a), tape.watch(b);
  const auto [p, q] = map([](auto u, auto v) { return std::pair(u * v, u - v); }, a, b);
  const std::vector<Gradient> g =
      tape.gradient(Targets{p, q}, Sources{a, b}, {.output_gradients = std::vector<Tensor>{dy, dy}});
  CHECK(same_bits(dy, before));
  CHECK(worst(g[0].dense(), dy * b + dy) < 1e-15);
  CHECK(worst(g[1].dense(), dy * a - dy) < 1e-15);
}

TEST_CASE("K stacked cotangents and tangents of a map give the K results", "[map]") {
  const auto f = [](auto u, auto v) { return std::pair(u * exp(v), u * u); };
  const Op& op = detail::kMapOp<"map", decltype(f), 2>;
  const Tensor u = uniform({4, 1}, 0.5, 2), v = uniform({3}, -1, 1, 1);
  const Tensors y = op.run(Tensors{u, v}, Attrs(f));
  const Tensor* x_refs[] = {&u, &v};
  const Tensor* y_refs[] = {&y[0], &y[1]};
  const Call call{.op = op, .raw_attrs = Attrs(f), .x = {x_refs, 2}, .y = {y_refs, 2}};
  const Tensors dy = {uniform({2, 4, 3}, -1, 1, 3), uniform({2, 4, 3}, -1, 1, 4)},
                du = {uniform({2, 4, 1}, -1, 1, 5)}, dv = {uniform({2, 3}, -1, 1, 6)};
  const auto row = [](const Tensor& t, std::int64_t k) { return gather(t, tensor(k)); };
  std::vector<Gradient> stacked_dy(dy.begin(), dy.end()), dx(2);
  op.rule.vjp(call, stacked_dy, dx);
  Tensors tangents(2);
  const Tensor* dx_refs[] = {&du[0], &dv[0]};
  op.rule.jvp(call, {dx_refs, 2}, tangents);
  for (std::int64_t k = 0; k < 2; ++k) {
    std::vector<Gradient> one = {row(dy[0], k), row(dy[1], k)}, expected(2);
    op.rule.vjp(call, one, expected);
    CHECK(worst(row(dx[0].dense(), k), expected[0].dense()) < 1e-14);
    CHECK(worst(row(dx[1].dense(), k), expected[1].dense()) < 1e-14);
    const Tensor one_du = row(du[0], k), one_dv = row(dv[0], k);
    const Tensor* one_refs[] = {&one_du, &one_dv};
    Tensors tangent(2);
    op.rule.jvp(call, {one_refs, 2}, tangent);
    CHECK(worst(row(tangents[0], k), tangent[0]) < 1e-14);
    CHECK(worst(row(tangents[1], k), tangent[1]) < 1e-14);
  }
}

TEST_CASE("an input of a map without a tangent adds nothing, even if its slope is infinite", "[map]") {
  const Tensor x = tensor({0.0, 4.0}), y = tensor({3.0, 5.0});
  const ForwardAccumulator along(y, ones_like(y));
  CHECK(along.jvp(map([](auto a, auto b) { return sqrt(a) * b; }, x, y)).to_vector<double>() ==
        std::vector{0.0, 2.0});
  const auto both = map([](auto a, auto b) { return std::array{sqrt(a) + 2.0 * b, sqrt(a)}; }, x, y);
  CHECK(along.jvp(both[0]).to_vector<double>() == std::vector{2.0, 2.0});
  CHECK(along.jvp(both[1], UnconnectedGradients::zero).to_vector<double>() == std::vector{0.0, 0.0});
}

TEST_CASE("maps give the same bits on any number of threads", "[map][threads]") {
  const std::int64_t rows = kSanitized ? 170 : 500, longest = rows * 401 + 3;
  const std::vector<Tensors> inputs = {
      {uniform({longest}, -1, 1), uniform({longest}, 0.5, 2, 1), uniform({}, 0.5, 1, 2)},
      {uniform({rows, 401}, -1, 1), uniform({401}, 0.5, 2, 1), uniform({rows, 1}, 0.5, 1, 2)},
      {uniform({3, rows * 133 + 1}, -1, 1), uniform({3, 1}, 0.5, 2, 1), uniform({}, 0.5, 1, 2)}};
  for (const Tensors& x : inputs) {
    const Tensor dy = uniform(x[0].shape(), -1, 1, 9);
    const Tensors dx = {uniform(x[0].shape(), -1, 1, 10), uniform(x[1].shape(), -1, 1, 11),
                        uniform(x[2].shape(), -1, 1, 12)};
    const auto all = [&] {
      return everything([](const Tensors& t) { return mapped(damped, t); }, x, dy, dx);
    };
    const Tensors one = all();
    for (const int threads : {2, 4}) {
      set_num_threads(threads);
      const Tensors several = all();
      set_num_threads(1);
      for (std::size_t i = 0; i < one.size(); ++i)
        CHECK(same_bits(one[i], several[i]));
    }
  }
}

}   // namespace map_test
