// Functions that are linear between kinks: their derivatives of second and higher orders are zeros, and not
// none.
#include <catch2/catch.hpp>
#include <functional>

#include "ops/sample_inputs.h"
#include "tapedeck/debug.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/tapedeck.h"

namespace piecewise_test {

using namespace tapedeck;
using samples::f64;
using samples::uniform;

namespace {

using Function = std::function<Tensor(const Tensor&)>;

struct Named {
  const char* name;
  Function f;
  Tensor x;
};

// The gradient of the gradient, and so on, of the sum of f(x); undefined where there is none.
Tensor derivative(const Function& f, const Tensor& x, int order) {
  if (order == 0) return f(x);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = derivative(f, x, order - 1);
  if (!y.defined()) return {};
  const Gradient g = tape.gradient(y, x);
  return g.defined() ? g.dense() : Tensor();
}
Tensor tangent_of_gradient(const Function& f, const Tensor& x) {
  const ForwardAccumulator accumulator(x, ones_like(x));
  const Tensor g = derivative(f, x, 1);
  return accumulator.jvp(g);
}

std::vector<Named> functions() {
  const Tensor row = f64({-3, -0.5, 0, 0.75, 2, 7}), other = f64({-4, 0.5, 1, 0.5, 3, 6}),
               rows = uniform({5, 3}, -1, 1), ids = tensor({0, 0, 1, 1, 1}), at = tensor({{0}, {2}, {0}}),
               image = uniform({1, 4, 4, 2}, -1, 1), line = uniform({1, 6, 2}, -1, 1),
               volume = uniform({1, 4, 4, 4, 1}, -1, 1);
  return {
      {"relu", [](const Tensor& x) { return relu(x); }, row},
      {"relu6", [](const Tensor& x) { return relu6(x); }, row},
      {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.1); }, row},
      {"abs", [](const Tensor& x) { return abs(x); }, row},
      {"sign", [](const Tensor& x) { return sign(x); }, row},
      {"maximum, first", [=](const Tensor& x) { return maximum(x, other); }, row},
      {"maximum, second", [=](const Tensor& x) { return maximum(other, x); }, row},
      {"minimum, first", [=](const Tensor& x) { return minimum(x, other); }, row},
      {"minimum, second", [=](const Tensor& x) { return minimum(other, x); }, row},
      {"clip", [](const Tensor& x) { return clip(x, -1, 1); }, row},
      {"clip, low", [=](const Tensor& x) { return clip(other, x, 5); }, row},
      {"clip, high", [=](const Tensor& x) { return clip(other, -5, x); }, row},
      {"elu", [](const Tensor& x) { return elu(x); }, f64({1, 2})},
      {"selu", [](const Tensor& x) { return selu(x); }, f64({1, 2})},
      {"max", [](const Tensor& x) { return max(x, 0); }, rows},
      {"min", [](const Tensor& x) { return min(x, 1); }, rows},
      {"segment_max", [=](const Tensor& x) { return segment_max(x, ids); }, rows},
      {"segment_min", [=](const Tensor& x) { return segment_min(x, ids); }, rows},
      {"unsorted_segment_max", [=](const Tensor& x) { return unsorted_segment_max(x, ids, 2); }, rows},
      {"unsorted_segment_min", [=](const Tensor& x) { return unsorted_segment_min(x, ids, 2); }, rows},
      {"tensor_scatter_max",
       [=](const Tensor& x) {
         return tensor_scatter_max(x, at, f64({-1, 1, 1}));
       },
       row},
      {"tensor_scatter_min", [=](const Tensor& x) { return tensor_scatter_min(other, at, x); },
       f64({1, 2, 3})},
      {"max_pool1d", [](const Tensor& x) { return max_pool1d(x, {.window = 2}); }, line},
      {"max_pool2d", [](const Tensor& x) { return max_pool2d(x, {.window = 2}); }, image},
      {"max_pool3d", [](const Tensor& x) { return max_pool3d(x, {.window = 2}); }, volume},
      {"fake_quant", [](const Tensor& x) { return fake_quant_with_min_max_args(x, -1, 2); }, row},
      {"quantize", [](const Tensor& x) { return quantize_and_dequantize(x, f64(-1), f64(2)); }, row},
  };
}

}   // namespace

TEST_CASE("functions that are linear in pieces have zeros as derivatives of any higher order",
          "[piecewise]") {
  for (const Named& function : functions()) {
    INFO(function.name);
    REQUIRE(derivative(function.f, function.x, 1).defined());
    for (const int order : {2, 3, 4}) {
      INFO("order " << order);
      const Tensor d = derivative(function.f, function.x, order);
      REQUIRE(d.defined());
      CHECK(d.shape() == function.x.shape());
      CHECK(max(abs(d)).item() == 0);
    }
    const Tensor t = tangent_of_gradient(function.f, function.x);
    REQUIRE(t.defined());
    CHECK(max(abs(t)).item() == 0);
  }
}

namespace {

// How many rules of this op have run since the profile began.
std::int64_t rules_of(const Profile& profile, std::string_view op) {
  for (const OpCost& cost : profile.costs())
    if (cost.name == op) return cost.rules;
  return 0;
}

}   // namespace

TEST_CASE("second derivatives skip paths that pass only zeros", "[piecewise]") {
  const Tensor x = uniform({5, 4}, -1, 1), w = uniform({4, 6}, -1, 1), v = uniform({5, 4}, -1, 1);
  // The mask of the minimum depends on both, but its derivative is zeros.
  const auto f = [&] { return sum(min(matmul(x, w), {1})); };
  GradientTape outer;
  outer.watch(x);
  outer.watch(w);
  Tensor of_x;
  {
    GradientTape inner;
    inner.watch(x);
    of_x = inner.gradient(f(), x).dense();
  }
  outer.stop();
  const Profile profile;
  const std::vector<Gradient> second = outer.gradient({of_x}, {x, w}, {.output_gradients = {v}});
  // In x zeros alone, which are not computed; in w through the product with the mask.
  CHECK(rules_of(profile, "matmul") == 1);
  CHECK(rules_of(profile, "min") == 0);
  REQUIRE(second[0].defined());
  CHECK(second[0].dense().shape() == x.shape());
  CHECK(max(abs(second[0].dense())).item() == 0);
  const Tensor y = matmul(x, w), mask = astype(equal(y, min(y, {1}, {.keepdims = true})), DType::f64);
  CHECK(max(abs(second[1].dense() - matmul(v, mask, {.transpose_a = true}))).item() < 1e-14);
}

TEST_CASE("ops of many inputs are kept in a pass that skips zeros", "[piecewise]") {
  const Tensor x = uniform({40}, 0.5, 1);
  const Tensor second = hessian(
      [](const Tensor& t) {
        std::vector<Tensor> parts = unstack(t);
        for (Tensor& part : parts)
          part = maximum(part, 0) * part;
        return sum(stack(parts));
      },
      x, {.mode = JacobianMode::reverse});
  CHECK(max(abs(second - 2 * eye(40, DType::f64))).item() < 1e-14);
}

TEST_CASE("zeros that were not computed have the shape of stacked cotangents", "[piecewise]") {
  const Tensor x = uniform({3}, -1, 1);
  const Tensor second =
      hessian([](const Tensor& t) { return sum(maximum(t, 0.5)); }, x, {.mode = JacobianMode::reverse});
  CHECK(second.shape() == Shape{3, 3});
  CHECK(max(abs(second)).item() == 0);
}

}   // namespace piecewise_test
