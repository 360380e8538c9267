// Maps of many tensors, compared with ops and closed forms.
#include <catch2/catch.hpp>
#include <limits>

#include "closeness.h"
#include "core/sanitizers.h"
#include "ops/sample_inputs.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/map.h"
#include "tapedeck/tapedeck.h"

namespace map_wide_test {

using namespace tapedeck;
using samples::f64, samples::uniform;
using Tensors = std::vector<Tensor>;

namespace {

template <class F> auto with_others(const F& f, const Tensor& x) {
  return map([f](auto a, auto...) { return f(a); }, x, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
}

// Of sixteen.
constexpr auto wide = [](auto a, auto b, auto c, auto d, auto e, auto f, auto g, auto h, auto i, auto j,
                         auto k, auto l, auto m, auto n, auto o, auto p) {
  const auto s = a * b + c * d + e * f + g * h, t = i * j - k / (2 + l * l);
  auto u = sin(s) * m;
  for (int step = 0; step < 3; ++step)
    u = u * n + t;
  return std::tuple(s, t, u, u * s, a, 2.0, where(o > p, o * u, p), exp(-p * p) * l);
};
template <class F> auto apply_to(const F& f, const Tensors& x) {
  return f(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12], x[13], x[14],
           x[15]);
}
std::array<Tensor, 8> with_map(const Tensors& x) {
  return apply_to([](const auto&... t) { return map(wide, t...); }, x);
}
std::vector<Tensor> with_ops(const Tensors& x) {
  Shape shape;
  for (const Tensor& t : x)
    shape = broadcast_shapes(shape, t.shape());
  return std::apply(
      [&](const auto&... y) {
        const auto tensor_of = [&](const auto& t) {
          if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(t)>>)
            return full(shape, t, x[0].dtype());
          else
            return broadcast_to(t, shape);
        };
        return std::vector<Tensor>{tensor_of(y)...};
      },
      apply_to(wide, x));
}
Tensors sixteen(const Shape& shape, const Shape& other, DType dtype) {
  Tensors x;
  for (int i = 0; i < 16; ++i)
    x.push_back(astype(uniform(i % 3 == 1 ? other : shape, 0.3, 1.1, i), dtype));
  return x;
}
template <class Y> Tensors values_and_gradients(const Y& of, const Tensors& x) {
  GradientTape tape;
  for (const Tensor& t : x)
    tape.watch(t);
  const auto y = of(x);
  Tensors all(y.begin(), y.end()), dy;
  for (std::size_t k = 0; k < 8; ++k)
    dy.push_back(astype(uniform(y[k].shape(), -1, 1, static_cast<int>(k)), x[0].dtype()));
  for (Gradient& g : tape.gradient(Targets(Tensors(y.begin(), y.end())), x, {.output_gradients = dy}))
    all.push_back(std::move(g).dense());
  return all;
}

}   // namespace

TEST_CASE("a map of sixteen tensors and eight results", "[map]") {
  const std::vector<std::array<Shape, 2>> shapes = {{{{7}, {}}},         {{{}, {}}},      {{{3, 5}, {5}}},
                                                    {{{4, 1}, {1, 33}}}, {{{0, 3}, {3}}}, {{{1}, {1}}},
                                                    {{{300, 37}, {37}}}, {{{16}, {16}}}};
  for (const auto& [shape, other] : shapes)
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Tensors x = sixteen(shape, other, dtype);
      const Tensors actual = values_and_gradients(with_map, x), expected = values_and_gradients(with_ops, x);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(to_string(shape), to_string(other), i);
        REQUIRE(actual[i].spec() == expected[i].spec());
        CHECK(worst(actual[i], expected[i]) <= (dtype == DType::f64 ? 1e-11 : 1e-2));
      }
    }
}

TEST_CASE("a map of many tensors agrees with differences, in both modes and to second order", "[map]") {
  const auto of = [](const Tensors& x) {
    const std::array<Tensor, 8> y = with_map(x);
    return y[2] * y[6] + y[3] + y[4] * y[7];
  };
  CHECK(check_gradients(of, sixteen({3}, {}, DType::f64)));
}

TEST_CASE("a map of many tensors may loop", "[map]") {
  // (b + c + …) aⁿ.
  const auto gradient = [](int steps) {
    Tensors x;
    for (int i = 0; i < 9; ++i)
      x.push_back(uniform({21}, 0.9, 1, i));
    GradientTape tape;
    for (const Tensor& t : x)
      tape.watch(t);
    const Tensor y = map(
        [steps](auto a, auto b, auto c, auto d, auto e, auto f, auto g, auto h, auto i) {
          auto s = b + c + d + e + f + g + h + i;
          for (int k = 0; k < steps; ++k)
            s = s * a;
          return s;
        },
        x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8]);
    const Tensor da = tape.gradient(y, x[0]).dense();
    for (std::int64_t j = 0; j < 21; ++j) {
      double s = 0;
      for (std::size_t i = 1; i < 9; ++i)
        s += x[i].at({j});
      CHECK(da.at({j}) == Approx(steps * s * std::pow(x[0].at({j}), steps - 1)));
    }
  };
  for (const int steps : {1, 2, 60, 500})
    gradient(steps);
}

TEST_CASE(
    "unselected and unused values in a map of many tensors add nothing, even if their slope is infinite",
    "[map]") {
  const Tensor x = f64({0, 4});
  const auto of = [&](std::size_t k) {
    GradientTape tape;
    tape.watch(x);
    const auto y =
        with_others([](auto u) { return std::tuple(where(u > 0, sqrt(u), 0), 2 * u, sqrt(u), 3.0); }, x);
    return tape.gradient(Targets(y[k]), Sources(x), {.unconnected = UnconnectedGradients::zero})[0]
        .dense()
        .to_vector();
  };
  CHECK(of(0) == std::vector<double>{0, 0.25});
  CHECK(of(1) == std::vector<double>{2, 2});
  CHECK(of(2) == std::vector<double>{std::numeric_limits<double>::infinity(), 0.25});
  CHECK(of(3) == std::vector<double>{0, 0});
}

TEST_CASE("wide maps give the same bits on any number of threads, and at any position", "[map][threads]") {
  const Tensors x = sixteen({kSanitized ? 160 : 300, 211}, {211}, DType::f64);
  const Tensors one = values_and_gradients(with_map, x);
  set_num_threads(2);
  const Tensors two = values_and_gradients(with_map, x);
  set_num_threads(1);
  for (std::size_t i = 0; i < one.size(); ++i)
    CHECK(same_bits(one[i], two[i]));
  const auto f = [](auto u) { return tanh(u) * sin(u) + pow(u, 2); };
  const auto gradient = [&](const Tensor& t) {
    GradientTape tape;
    tape.watch(t);
    return tape.gradient(with_others(f, t), t).dense();
  };
  const Tensor t = astype(uniform({41}, -4, 4), DType::f32), dt = gradient(t);
  for (std::int64_t i = 0; i < 41; ++i)
    CHECK(gradient(tensor(t.at<float>({i}))).at<float>({}) == dt.at<float>({i}));
}

}   // namespace map_wide_test
