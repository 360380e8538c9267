// Maps of shifted operands, compared with the same function of tensors that are cut and padded, and with
// closed forms.
#include <catch2/catch.hpp>

#include "closeness.h"
#include "core/sanitizers.h"
#include "message_of.h"
#include "ops/sample_inputs.h"
#include "tapedeck/compile.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/map.h"
#include "tapedeck/tapedeck.h"

namespace map_shift_test {

using namespace tapedeck;
using samples::f64, samples::uniform;
using test::message_of;
using Tensors = std::vector<Tensor>;

namespace {

// x moved by elements of its last axis, one slice and one concatenation, as shifted() says.
Tensor by_concat(const Tensor& x, std::int64_t by, double fill = 0) {
  const int last = x.ndim() - 1;
  const std::int64_t n = x.shape()[last], k = std::abs(by);
  Shape edge = x.shape();
  edge.set(last, k);
  const Tensor outside = full(edge, fill, x.dtype()),
               inside = by < 0 ? x[{Slice::ellipsis, {k, n}}] : x[{Slice::ellipsis, {0, n - k}}];
  return concat(by < 0 ? Tensors{inside, outside} : Tensors{outside, inside}, last);
}

constexpr auto stencil = [](auto before, auto x, auto behind, auto c) {
  return std::pair(c * (before - 2 * x + behind) + x * x * behind, before * exp(-x));
};
struct Offsets {
  std::int64_t before, behind;
};
Tensors with_map(const Tensors& x, Offsets o) {
  const auto [a, b] = map(stencil, shifted(x[0], o.before, 0.5), x[0], shifted(x[0], o.behind, -1), x[1]);
  return {a, b};
}
Tensors with_ops(const Tensors& x, Offsets o) {
  const auto [a, b] = stencil(by_concat(x[0], o.before, 0.5), x[0], by_concat(x[0], o.behind, -1), x[1]);
  const Shape shape = broadcast_shapes(x[0].shape(), x[1].shape());
  return {broadcast_to(a, shape), broadcast_to(b, shape)};
}

// Values, tangents, gradients, and second derivatives.
template <class F> Tensors everything(const F& f, const Tensors& x) {
  Tensors all, v;
  for (const Tensor& t : x)
    v.push_back(astype(uniform(t.shape(), -1, 1, 5), t.dtype()));
  const auto weighted = [&](const Tensors& t) {
    const Tensors y = f(t);
    return sum(y[0] * y[1] + 2 * y[0]);
  };
  {
    const ForwardAccumulator along(x, v);
    for (const Tensor& t : f(x))
      all.push_back(t), all.push_back(along.jvp(t).tensor());
  }
  GradientTape outer;
  for (const Tensor& t : x)
    outer.watch(t);
  Tensors dx;
  {
    GradientTape tape;
    for (const Tensor& t : x)
      tape.watch(t);
    for (Gradient& g : tape.gradient(weighted(x), x))
      dx.push_back(std::move(g).dense());
  }
  {
    const StopRecording pause(outer);
    GradientTape tape;   // not recorded: by a pass alone
    for (const Tensor& t : x)
      tape.watch(t);
    for (Gradient& g : tape.gradient(weighted(x), x))
      all.push_back(std::move(g).dense());
  }
  all.insert(all.end(), dx.begin(), dx.end());
  for (Gradient& g : outer.gradient(dx, x, {.output_gradients = v}))
    all.push_back(std::move(g).dense());
  return all;
}

void check_like_ops(const Tensors& x, Offsets o, double tolerance) {
  const Tensors actual = everything([&](const Tensors&t) { return with_map(t, o); }, x),
                expected = everything([&](const Tensors&t) { return with_ops(t, o); }, x);
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(to_string(x[0].shape()), to_string(x[1].shape()), o.before, o.behind, i, actual[i], expected[i]);
    REQUIRE(actual[i].spec() == expected[i].spec());
    CHECK(worst(actual[i], expected[i]) <= tolerance);
  }
}

}   // namespace

TEST_CASE("a shifted operand reads the elements before and after", "[map]") {
  const auto read = [](const Shifted& x) { return map([](auto t) { return 1 * t; }, x).to_vector(); };
  const Tensor x = f64({1, 2, 3});
  CHECK(read(shifted(x, 0)) == std::vector<double>{1, 2, 3});
  CHECK(read(shifted(x, 1)) == std::vector<double>{0, 1, 2});
  CHECK(read(shifted(x, -1, 9)) == std::vector<double>{2, 3, 9});
  CHECK(read(shifted(x, 3, -1)) == std::vector<double>{-1, -1, -1});
  CHECK(read(shifted(x, -3)) == std::vector<double>{0, 0, 0});
  CHECK(read(shifted(f64({{1, 2, 3}, {4, 5, 6}}), 2, 7)) == std::vector<double>{7, 7, 1, 7, 7, 4});
  CHECK(read(shifted(reshape(f64({1, 2}), {2, 1}), 1, 7)) == std::vector<double>{7, 7});
  CHECK(read(shifted(zeros({3, 0}), 0)).empty());
  CHECK(read(shifted(Variable(x), 1)) == std::vector<double>{0, 1, 2});
  CHECK(read(shifted(x + 1, -1)) == std::vector<double>{3, 4, 0});
}

TEST_CASE("the gradient of a shifted operand is added where it was read", "[map]") {
  const Tensor x = f64({1, 2, 4, 8});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = map([](auto before, auto t) { return before * t; }, shifted(x, 1, 10), x);
  REQUIRE(tape.size() == 1);
  CHECK(y.to_vector() == std::vector<double>{10, 2, 8, 32});
  CHECK(tape.gradient(y, x).dense().to_vector() == std::vector<double>{12, 5, 10, 4});

  GradientTape alone;
  alone.watch(x);
  const Tensor z = map([](auto t) { return t * t; }, shifted(x, -2));
  CHECK(alone.gradient(z, x).dense().to_vector() == std::vector<double>{0, 0, 8, 16});
}

TEST_CASE("shifted operands agree with slices and concatenations, to second order", "[map]") {
  for (const std::int64_t n : {1, 2, 3, 7, 8, 9, 16, 31, 64, 100})
    for (const Offsets o : {Offsets{1, -1}, Offsets{-1, 1}, Offsets{1, 1}, Offsets{0, -1}, Offsets{n, -n},
                            Offsets{n / 2, -(n - n / 3)}}) {
      check_like_ops({uniform({n}, -1, 1), uniform({n}, 0.5, 1, 1)}, o, 1e-13);
      check_like_ops({uniform({3, n}, -1, 1), uniform({}, 0.5, 1, 1)}, o, 1e-12);
    }
  for (const Shape& other : {Shape{5, 1}, Shape{19}, Shape{2, 1, 1}, Shape{2, 5, 19}})
    for (const DType dtype : {DType::f64, DType::f32})
      check_like_ops({astype(uniform({5, 19}, -1, 1), dtype), astype(uniform(other, 0.5, 1, 1), dtype)},
                     {2, -3}, dtype == DType::f64 ? 1e-12 : 1e-3);
  check_like_ops({uniform({1, 19}, -1, 1), uniform({4, 19}, 0.5, 1, 1)}, {3, -1}, 1e-12);
  check_like_ops({uniform({0, 3}, -1, 1), uniform({3}, 0.5, 1, 1)}, {1, -1}, 0);
  check_like_ops({uniform({3, 1}, -1, 1), uniform({2, 1, 1}, 0.5, 1, 1)}, {1, -1}, 1e-13);
  check_like_ops({uniform({70'001}, -1, 1), uniform({}, 0.5, 1, 1)}, {1, -40'000}, 1e-9);
}

TEST_CASE("shifted operands agree with differences, in both modes and to second order", "[map]") {
  const auto of = [](const Tensors& x) {
    const Tensors y = with_map(x, {1, -2});
    return y[0] + sin(y[1]);
  };
  CHECK(check_gradients(of, {uniform({2, 9}, -1, 1), uniform({9}, 0.5, 1, 1)}));
}

TEST_CASE("shifted operands have Jacobians, few rows and many", "[map]") {
  for (const std::int64_t n : {3, 20}) {
    const Tensor x = uniform({n}, 0.2, 1), c = f64(0.5);
    for (const JacobianMode mode : {JacobianMode::reverse, JacobianMode::forward}) {
      const auto of = [&](const auto& f) {
        return jacobian(
            [&](const Tensor& t) {
              return f({t, c}, {1, -1})[0];
            },
            x, JacobianOptions{.mode = mode});
      };
      CHECK(worst(of(with_map), of(with_ops)) < 1e-13);
    }
    const auto curved = [&](const auto& f) {
      return hessian([&](const Tensor& t) { return sum(f({t, c}, {1, -1})[0]); }, x);
    };
    CHECK(worst(curved(with_map), curved(with_ops)) < 1e-12);
  }
}

TEST_CASE("shifted operands: many tensors, halves and numbers", "[map]") {
  const Tensor x = uniform({20}, -1, 1);
  const auto sum_of_nine = [](auto a, auto b, auto c, auto d, auto e, auto f, auto g, auto h, auto i) {
    return a * b + c * d + e * f + g * h * i;
  };
  GradientTape tape;
  tape.watch(x);
  const Tensor y = map(sum_of_nine, shifted(x, -4), shifted(x, -3), shifted(x, -2), shifted(x, -1), x,
                       shifted(x, 1), shifted(x, 2), shifted(x, 3), 2);
  const Tensor dx = tape.gradient(y, x).dense();
  GradientTape of_ops;
  of_ops.watch(x);
  const Tensor z = sum_of_nine(by_concat(x, -4), by_concat(x, -3), by_concat(x, -2), by_concat(x, -1), x,
                               by_concat(x, 1), by_concat(x, 2), by_concat(x, 3), 2);
  CHECK(worst(y, z) < 1e-15);
  CHECK(worst(dx, of_ops.gradient(z, x).dense()) < 1e-14);

  const Tensor half = astype(f64({1, 2, 3}), DType::f16);
  GradientTape of_half;
  of_half.watch(half);
  const Tensor product = map([](auto a, auto b) { return a * b; }, shifted(half, 1, 4), half);
  CHECK(product.dtype() == DType::f16);
  CHECK(product.to_vector() == std::vector<double>{4, 2, 6});
  CHECK(of_half.gradient(product, half).dense().to_vector() == std::vector<double>{6, 4, 2});
  CHECK(map([](auto a, auto b) { return a + b; }, shifted(tensor({1, 2}), 1), f64({1, 2})).to_vector() ==
        std::vector<double>{1, 3});
}

TEST_CASE("a shifted operand is not overwritten by a result that takes its memory", "[map]") {
  const Tensor x = ones({100, 50}),
               y = map([](auto a, auto b) { return a + b; }, shifted(x + 1, 1, 5), x + 2);
  CHECK(worst(y[{{}, {1, 50}}], full({100, 49}, 5)) == 0);
  CHECK(worst(y[{{}, 0}], full({100}, 8)) == 0);
  // The memory of the product's gradient has no other owner.
  GradientTape tape;
  tape.watch(x);
  const Tensor z = 3 * map([](auto a, auto b) { return a * b; }, shifted(x, 1), x);
  const Tensor dx = tape.gradient(z, x).dense();
  CHECK(worst(dx[{{}, {1, 49}}], full({100, 48}, 6)) == 0);
  CHECK(worst(dx[{{}, 49}], full({100}, 3)) == 0);
}

TEST_CASE("maps of shifted operands replay with the same bits", "[map]") {
  const auto f = [](const Tensor& x, const Tensor& c) {
    return everything([](const Tensors& t) { return with_map(t, {2, -1}); }, {x, c});
  };
  const auto g = compile(f);
  for (const double factor : {0.5, 1.5, 2.5}) {
    const Tensor x = uniform({3, 17}, -1, 1) * factor, c = f64(factor);
    const Tensors expected = f(x, c), actual = g(x, c);
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(same_bits(actual[i], expected[i]));
  }
}

TEST_CASE("maps of shifted operands give the same bits on any number of threads", "[map][threads]") {
  const std::int64_t rows = kSanitized ? 170 : 500;
  const std::vector<Tensors> inputs = {{uniform({rows * 401 + 3}, -1, 1), uniform({}, 0.5, 1, 1)},
                                       {uniform({rows, 401}, -1, 1), uniform({401}, 0.5, 1, 1)},
                                       {uniform({3, rows * 133 + 1}, -1, 1), uniform({3, 1}, 0.5, 1, 1)}};
  for (const Tensors& x : inputs) {
    const auto all = [&] { return everything([](const Tensors& t) { return with_map(t, {1, -2}); }, x); };
    const Tensors one = all();
    set_num_threads(2);
    const Tensors two = all();
    set_num_threads(1);
    for (std::size_t i = 0; i < one.size(); ++i)
      CHECK(same_bits(one[i], two[i]));
  }
}

TEST_CASE("shifted: errors", "[map]") {
  const auto f = [](auto a, auto b) { return a + b; };
  CHECK(message_of<ArgumentError>([] { shifted(2.0, 1); }) ==
        "shifted: x is a number, which has no axis; pass a tensor");
  CHECK(message_of<ArgumentError>([] { shifted(Tensor(), 1); }) ==
        "shifted: x is undefined; it was default-constructed or moved from");
  CHECK(message_of<ShapeError>([] { shifted(tensor(1.0), 1); }) == "shifted: x is f32[], which has no axis");
  CHECK(message_of<ShapeError>([] {
          shifted(zeros({2, 3}), 4);
        }) == "shifted: by is 4, but the last axis of x, f32[2,3], has 3 elements");
  CHECK(message_of<ShapeError>([] {
          shifted(zeros({2, 3}), std::numeric_limits<std::int64_t>::min());
        }) == "shifted: by is -9223372036854775808, but the last axis of x, f32[2,3], has 3 elements");
  CHECK(message_of<ShapeError>([&] {
          map<"blend">(f, shifted(zeros({2, 1}), 1), zeros({2, 4}));
        }) ==
        "blend: input 0 is shifted along its last axis, so it must not broadcast along it; use broadcast_to: "
        "input 0 is f32[2,1], input 1 is f32[2,4]");
  CHECK_THROWS_AS(map(f, shifted(zeros({3}), 1), zeros({4})), ShapeError);
  CHECK_THROWS_AS(map(f, shifted(tensor({1, 2}), 1), tensor({3, 4})), DTypeError);
  CHECK_THROWS_AS(map(f, shifted(zeros({2}, DType::c64), 1), 1.0), DTypeError);
  CHECK(map(f, shifted(zeros({2, 1}), 0), zeros({2, 4})).shape() == Shape{2, 4});
}

}   // namespace map_shift_test
