// Quantisation is differentiated as if nothing were rounded: its rules are compared with those of clipping,
// which are tested against differences.
#include <catch2/catch.hpp>
#include <functional>

#include "closeness.h"
#include "ops/sample_inputs.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/tapedeck.h"

namespace quantize_test {

using namespace tapedeck;
using samples::uniform;

namespace {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

std::vector<Tensor> pulled_back(const Function& f, const std::vector<Tensor>& x, const Tensor& dy) {
  GradientTape tape;
  for (const Tensor& t : x)
    tape.watch(t);
  std::vector<Tensor> dx;
  for (const Gradient& g : tape.gradient(Targets(f(x)), Sources(x), {.output_gradients = {dy}}))
    dx.push_back(g.dense());
  return dx;
}
Tensor pushed_forward(const Function& f, const std::vector<Tensor>& x, std::size_t i, const Tensor& v) {
  ForwardAccumulator accumulator(x[i], v);
  const Tensor y = f(x);
  return accumulator.jvp(y);
}

// Checks that f, which rounds, has the derivatives of `smooth` in both modes.
void check_derivative_of(const Function& smooth, const Function& f, const std::vector<Tensor>& x) {
  CHECK(check_gradients(smooth, x));
  const Tensor dy = uniform(x[0].shape(), -1, 1, 5);
  const std::vector<Tensor> expected = pulled_back(smooth, x, dy), dx = pulled_back(f, x, dy);
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(worst(dx[i], expected[i]) < 1e-14);
    const Tensor v = uniform(x[i].shape(), -1, 1, 6);
    CHECK(worst(pushed_forward(f, x, i, v), pushed_forward(smooth, x, i, v)) < 1e-14);
  }
}

}   // namespace

TEST_CASE("gradients of rounded values are the gradients of clipping", "[quantize]") {
  const Tensor x = uniform({4, 3}, -2, 3), low = tensor(-0.9, DType::f64),
               high = tensor(2.1, DType::f64);   // a range that quantisation shifts by 0.1
  const auto clipped = [](const std::vector<Tensor>& in) {
    return clip(in[0], in.size() == 1 ? Tensor(tensor(-1.0, DType::f64)) : in[1] - 0.1,
                in.size() == 1 ? Tensor(tensor(2.0, DType::f64)) : in[2] - 0.1);
  };
  check_derivative_of(clipped,
                      [](const std::vector<Tensor>& in) {
                        return fake_quant_with_min_max_args(in[0], -0.9, 2.1, {.bits = 2});
                      },
                      {x});
  check_derivative_of(clipped,
                      [](const std::vector<Tensor>& in) {
                        return fake_quant_with_min_max_vars(in[0], in[1], in[2], {.bits = 2});
                      },
                      {x, low, high});
  check_derivative_of(clipped,
                      [](const std::vector<Tensor>& in) {
                        return fake_quant_with_min_max_vars_per_channel(in[0], in[1], in[2], {.bits = 2});
                      },
                      {x, full({3}, -0.9, DType::f64), full({3}, 2.1, DType::f64)});
  check_derivative_of(
      [](const std::vector<Tensor>& in) { return clip(in[0], in[1], in[2]); },
      [](const std::vector<Tensor>& in) { return quantize_and_dequantize(in[0], in[1], in[2], {.bits = 3}); },
      {x, low, high});
  check_derivative_of(
      [](const std::vector<Tensor>& in) { return identity(in[0]); },
      [](const std::vector<Tensor>& in) { return quantize_and_dequantize(in[0], {.bits = 3}); }, {x});
}

TEST_CASE("0 stays exactly 0, whatever the range around it", "[quantize]") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor min = astype(uniform({64}, -3, -0.1), dtype), max = astype(uniform({64}, 0.1, 3, 1), dtype);
    for (const Tensor& x : {zeros({64}, dtype), zeros({37, 64}, dtype)})
      CHECK(count_nonzero(fake_quant_with_min_max_vars_per_channel(x, min, max)).item() == 0);
  }
}

TEST_CASE("each entry of an axis has its own range", "[quantize]") {
  const Tensor x = uniform({2, 3, 4}, -2, 3), low = tensor({-0.9, -2.0, 0.0}, DType::f64),
               high = tensor({2.1, 1.0, 1.5}, DType::f64);
  const auto each = [](const Tensor& t, const auto& f) {
    std::vector<Tensor> parts = unstack(t, 1);
    for (std::size_t i = 0; i < parts.size(); ++i)
      parts[i] = f(parts[i], i);
    return stack(parts, 1);
  };
  for (const int axis : {1, -2}) {
    const QuantizeAndDequantizeOptions options = {.bits = 4, .axis = axis}, one = {.bits = 4};
    CHECK(same_bits(quantize_and_dequantize(x, low, high, options),
                    each(x, [&](const Tensor& part, std::size_t i) {
                      return quantize_and_dequantize(part, unstack(low)[i], unstack(high)[i], one);
                    })));
    CHECK(same_bits(quantize_and_dequantize(x, options), each(x, [&](const Tensor& part, std::size_t) {
                      return quantize_and_dequantize(part, one);
                    })));
  }
  check_derivative_of(
      [](const std::vector<Tensor>& in) { return clip(in[0], expand_dims(in[1], 1), expand_dims(in[2], 1)); },
      [](const std::vector<Tensor>& in) {
        return quantize_and_dequantize(in[0], in[1], in[2], {.bits = 3, .axis = 1});
      },
      {x, low, high});
  check_derivative_of(
      [](const std::vector<Tensor>& in) { return identity(in[0]); },
      [](const std::vector<Tensor>& in) { return quantize_and_dequantize(in[0], {.bits = 3, .axis = 0}); },
      {x});
  CHECK_THROWS_WITH(
      quantize_and_dequantize(x, low, high, {.axis = 0}),
      "quantize_and_dequantize: min and max must have shape [2]: x is f64[2,3,4], min is f64[3], "
      "max is f64[3]");
  CHECK_THROWS_WITH(quantize_and_dequantize(x, {.axis = 3}),
                    "quantize_and_dequantize: axis 3 is out of range for x of rank 3; use -3..2");
}

TEST_CASE("NaN in a range that is a tensor is NaN in the result", "[quantize]") {
  const double nan = std::nan("");
  const Tensor x = tensor({{1.0, 2.0}}, DType::f64), low = tensor({nan, 0.0}, DType::f64),
               high = tensor({1.0, 4.0}, DType::f64);
  const std::vector<double> y =
      fake_quant_with_min_max_vars_per_channel(x, low, high, {.bits = 2}).to_vector();
  CHECK((std::isnan(y[0]) && y[1] == Approx(8.0 / 3)));
  CHECK_THROWS_WITH(fake_quant_with_min_max_args(x, nan, 1),
                    "fake_quant_with_min_max_args: min is nan, max is 1; use a finite min below max");
  CHECK_THROWS_WITH(quantize_and_dequantize(x, tensor(1.0, DType::f64), tensor(0.0, DType::f64)),
                    "quantize_and_dequantize: min is 1, max is 0; use a finite min of at most max");
  CHECK_THROWS_WITH(quantize_and_dequantize(x, {.bits = 25}),
                    "quantize_and_dequantize: bits is 25; use 2..24");
}

}   // namespace quantize_test
