// ForwardAccumulator, alone and nested with tapes. Expected values are closed forms.
#include <catch2/catch.hpp>
#include <cmath>

#include "tapedeck/op.h"
#include "tapedeck/tapedeck.h"

using namespace tapedeck;

namespace {

const Tensor kX = tensor(0.5, DType::f64), kOne = tensor(1.0, DType::f64);

// x³ without a jvp, which forward mode finds by transposing the vjp.
constexpr Op kCube = {
    .name = "cube",
    .doc = "x³.",
    .args = {"x"},
    .infer = [](const Call& c) { return c.x[0].spec(); },
    .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = c.x[0] * c.x[0] * c.x[0]; }, Outputs::own},
    .rule = custom({.x = 1}, [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) { dx[0] = 3 * c.x[0] * c.x[0] * dy[0].dense(); }),
};

}  // namespace

TEST_CASE("an accumulator follows what depends on its primal", "[forward]") {
  const ForwardAccumulator forward(kX, tensor(2.0, DType::f64));
  CHECK(forward.jvp(exp(kX)).item() == Approx(2 * std::exp(0.5)));
  CHECK_FALSE(forward.jvp(exp(kOne)).defined());
  CHECK(forward.jvp(kX).item() == 2);
}

TEST_CASE("tangents fit their primals", "[forward][errors]") {
  CHECK_THROWS_WITH(ForwardAccumulator(kX, tensor(1.0)), "forward accumulator: the primal is f64[], its tangent f32[]; use astype");
  CHECK_THROWS_AS(ForwardAccumulator(kX, ones({2}, DType::f64)), ShapeError);
}

TEST_CASE("a tape around an accumulator differentiates tangents", "[forward]") {
  GradientTape tape;
  tape.watch(kX);
  const ForwardAccumulator forward(kX, kOne);
  const Tensor tangent = forward.jvp(tanh(kX));   // 1 - tanh² is computed from the output
  const double t = std::tanh(0.5);
  CHECK(tape.gradient(tangent, kX).dense().item() == Approx(-2 * t * (1 - t * t)));
}

TEST_CASE("an accumulator around a tape pushes tangents through its gradient", "[forward]") {
  const ForwardAccumulator forward(kX, kOne);
  GradientTape tape;
  tape.watch(kX);
  const Tensor y = sum(tanh(kX * 2.0));   // the output of tanh lives on as the tape's copy only
  const Tensor gradient = tape.gradient(y, kX).dense();
  const double t = std::tanh(1.0), s = 1 - t * t;
  CHECK(gradient.item() == Approx(2 * s));
  CHECK(forward.jvp(gradient).item() == Approx(-8 * t * s));
}

TEST_CASE("accumulators nest", "[forward]") {
  const ForwardAccumulator outer(kX, kOne);
  const ForwardAccumulator inner(kX, kOne);
  const Tensor y = exp(kX * kX);   // y' = 2x y, y" = (2 + 4x²) y
  const Tensor first = inner.jvp(y);
  CHECK(first.item() == Approx(std::exp(0.25)));
  CHECK(outer.jvp(first).item() == Approx(3 * std::exp(0.25)));
  CHECK_FALSE(inner.jvp(outer.jvp(y)).defined());
}

TEST_CASE("an op without a jvp is followed by transposing its vjp", "[forward]") {
  GradientTape tape;
  tape.watch(kX);
  const ForwardAccumulator forward(kX, tensor(2.0, DType::f64));
  const Tensor* x[] = {&kX};
  const Tensor tangent = forward.jvp(kCube.execute({x, 1}));
  CHECK(tangent.item() == Approx(2 * 0.75));
  CHECK(tape.gradient(tangent, kX).dense().item() == Approx(2 * 3));
}

TEST_CASE("tangents end with their tensors", "[forward][memory]") {
  const Tensor x = ones({1000});
  const ForwardAccumulator forward(x, ones({1000}));
  const std::int64_t base = live_bytes();
  for (int i = 0; i < 100; ++i) {
    const Tensor y = exp(x) * 2.0;
    REQUIRE(forward.jvp(y).defined());
  }
  CHECK(live_bytes() == base);
}

TEST_CASE("an accumulator ends inside a tape that has followed its tangents", "[forward]") {
  const Tensor x = tensor({1.0, 2.0}), dx = tensor({3.0, 4.0});
  GradientTape outer({.persistent = true});
  outer.watch(x);
  for (int i = 0; i < 3; ++i) {
    ForwardAccumulator forward(x, dx);
    const Tensor dy = forward.jvp(exp(x * x) + x);
    CHECK(outer.gradient(sum(dy), x).defined());
  }
  std::vector<Tensor> others;   // handles that were given back twice would be given out twice
  for (int i = 0; i < 200; ++i) others.push_back(tensor(1.0 * i));
  for (int i = 0; i < 200; ++i) CHECK(others[static_cast<std::size_t>(i)].item() == i);
}
