// Biases and dropout. In: activations. Out: activations of the same shape.

#include "ops/nn/nn.h"

#include "core/format.h"
#include "core/storage.h"
#include "kernels/random/random.h"
#include "op/rules.h"
#include "ops/axes.h"
#include "ops/layout/positions.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Tensor dropped_out(const DropoutAttrs& a, const Tensor& x, const Tensor& dropped);

constexpr Op kDropout = {
    .name = "dropout",
    .doc = "0 for dropped elements, a fraction `rate` of all, and x / (1 - rate) for the others.",
    .args = {"x", "dropped"},
    .infer =
        [](const Call& c) {
          const Tensor &x = c.x[0], &dropped = c.x[1];
          require_floating(c, 0);
          if (dropped.dtype() != DType::boolean) c.throw_dtype_error("dropped must be bool");
          if (x.ndim() < dropped.ndim() ||
              Shape(x.shape().dims().last(static_cast<std::size_t>(dropped.ndim()))) != dropped.shape())
            c.throw_shape_error("the last axes of x must match dropped");
          return x.spec();
        },
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::drop(c.x[0], c.x[1], 1 / (1 - c.attrs<DropoutAttrs>().rate), y[0]);
        },
    .rule = Rule::linear(
        [](const Call& c, const Tensor& dy) { return dropped_out(c.attrs<DropoutAttrs>(), dy, c.x[1]); },
        {.x = 0b10}),
};

constexpr const Op* nn_table[] = {&kDropout};

Tensor dropped_out(const DropoutAttrs& a, const Tensor& x, const Tensor& dropped) {
  return kDropout(x, dropped, a);
}

}   // namespace

Tensor dropout(const Tensor& x, double rate, random::Key key) {
  if (!(rate >= 0 && rate < 1))
    throw_error<ArgumentError>("dropout: rate is {}; use 0 or more and less than 1", rate);
  if (!is_floating(x.dtype()))
    throw_error<DTypeError>("dropout: takes f32, f64, f16 or bf16, use astype: x is {}", x.spec());
  return dropped_out({rate}, x, random::uniform(x.shape(), key, 0, 1, DType::f32) < rate);
}

Tensor bias_add(const Tensor& x, const Tensor& bias) {
  if (bias.ndim() != 1 || x.ndim() == 0 || bias.size() != x.shape()[x.ndim() - 1])
    throw_error<ShapeError>(
        "bias_add: bias must be a vector as long as the last axis of x: x is {}, bias is {}", x.spec(),
        bias.spec());
  return x + bias;
}

std::span<const Op* const> nn_ops() { return nn_table; }

}   // namespace tapedeck
