// record_operation: an operation that brings its own backward function.
#include <catch2/catch.hpp>

#include "tapedeck/tapedeck.h"

using namespace tapedeck;

namespace {

// x³, shown to the tape as one operation.
Tensor cube(const Tensor& x) {
  Tensor y;
  {
    const StopRecording pause;
    y = x * x * x;
  }
  record_operation("cube", std::array{y}, std::array{x}, [x](std::span<const Tensor> dy) { return std::vector<Gradient>{3.0 * x * x * dy[0]}; },
                   [x](std::span<const Tensor> dx) { return std::vector<Tensor>{3.0 * x * x * dx[0]}; });
  return y;
}

}  // namespace

TEST_CASE("a recorded operation is differentiated by its own function, to any order", "[custom]") {
  const Tensor x = tensor(2.0, DType::f64);
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    first = inner.gradient(cube(x), x).dense();
  }
  CHECK(first.item() == 12);
  CHECK(outer.gradient(first, x).dense().item() == 12);
  const ForwardAccumulator forward(x, tensor(1.0, DType::f64));
  CHECK(forward.jvp(cube(x)).item() == 12);
}

TEST_CASE("a recorded operation may have several outputs, of which unused ones get zeros", "[custom]") {
  const Tensor x = tensor(3.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor a = tensor(1.0), b = tensor(5.0);
  record_operation("two", std::array{a, b}, std::array{x},
                   [](std::span<const Tensor> dy) { return std::vector<Gradient>{dy[0] + 10.0 * dy[1]}; });
  CHECK(tape.gradient(2.0 * b, x).dense().item() == 20);
}

TEST_CASE("an operation recorded on a tensor that is known already takes its place", "[custom]") {
  const Tensor x = tensor(3.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * 2.0;
  record_operation("seven", std::array{y}, std::array{x}, [](std::span<const Tensor> dy) { return std::vector<Gradient>{7.0 * dy[0]}; });
  CHECK(tape.gradient(y, x).dense().item() == 7);
}

TEST_CASE("a backward function that returns too few gradients is named", "[custom]") {
  const Tensor x = tensor(3.0), w = tensor(1.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = tensor(1.0);
  record_operation("lazy", std::array{y}, std::array{x, w}, [](std::span<const Tensor> dy) { return std::vector<Gradient>{dy[0]}; });
  CHECK_THROWS_WITH(tape.gradient(y, x), "lazy: the backward function returned 1 gradients for 2 inputs");
  CHECK_THROWS_AS(record_operation("none", {}, std::array{x}, [](std::span<const Tensor>) { return std::vector<Gradient>{}; }), ArgumentError);
}
