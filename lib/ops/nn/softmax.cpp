// Softmax along an axis. In: logits. Out: probabilities, or their logarithms.
#include "ops/nn/softmax.h"

#include "kernels/nn/softmax.h"
#include "op/elementwise.h"
#include "op/rules.h"
#include "ops/axes.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Tensor log_softmax_derivative(Operand v, Operand total, Operand log_share);

Spec infer_softmax(const Call& c) {
  require_floating(c, 0);
  require_axes(c, -c.attrs<SoftmaxAttrs>().axis);
  return c.x[0].spec();
}

// v must have the shape of p, optionally preceded by leading axes.
Spec infer_derivative(const Call& c) {
  const Spec p = infer_softmax(c);
  const Tensor& v = c.x[1];
  require_one_dtype(c);
  if (v.ndim() < p.shape.ndim() ||
      Shape(v.shape().dims().last(static_cast<std::size_t>(p.shape.ndim()))) != p.shape)
    c.throw_shape_error("the last axes of v must match p");
  return v.spec();
}

// The gradient of softmax_derivative with respect to p.
Tensor along_p(const Call& c, const Tensor& dy) {
  const Tensor &p = c.x[0], &v = c.x[1];
  const int axis = c.attrs<SoftmaxAttrs>().axis;
  const Tensor of_all =
      dy * (v - sum(v * p, axis, {.keepdims = true})) - v * sum(dy * p, axis, {.keepdims = true});
  std::vector<int> extra;   // leading axes that only v has
  for (int d = p.ndim(); d < v.ndim(); ++d)
    extra.push_back(-1 - d);
  return extra.empty() ? of_all : sum(of_all, extra);
}

constexpr Op kSoftmax = {
    .name = "softmax",
    .doc = "Exponentials divided by their sum along an axis: yᵢ = exp(xᵢ) / Σⱼ exp(xⱼ).",
    .tensorflow = "Softmax",
    .args = {"x"},
    .infer = infer_softmax,
    .forward = [](const Call& c,
                  std::span<Tensor> y) { kernels::softmax(c.x[0], c.attrs<SoftmaxAttrs>().axis, y[0]); },
    .rule = Rule::custom(
                {.y = true},
                [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                  dx[0] = softmax_derivative(c.y[0], std::move(dy[0]).dense(), c.attrs<SoftmaxAttrs>().axis);
                },
                [](const Call& c, Refs dx, std::span<Tensor> dy) {
                  dy[0] = softmax_derivative(c.y[0], dx[0], c.attrs<SoftmaxAttrs>().axis);
                })
                .stacking_jvp(),
};

constexpr Op kLogSoftmax = {
    .name = "log_softmax",
    .doc = "Logarithm of the softmax along an axis: yᵢ = xᵢ - log Σⱼ exp(xⱼ).",
    .tensorflow = "LogSoftmax",
    .args = {"x"},
    .infer = infer_softmax,
    .forward = [](const Call& c,
                  std::span<Tensor> y) { kernels::log_softmax(c.x[0], c.attrs<SoftmaxAttrs>().axis, y[0]); },
    .rule = Rule::custom(
                {.y = true},
                [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
                  const Tensor dy = std::move(dys[0]).dense();
                  dx[0] = log_softmax_derivative(
                      dy, sum(dy, c.attrs<SoftmaxAttrs>().axis, {.keepdims = true}), c.y[0]);
                },
                [](const Call& c, Refs dx, std::span<Tensor> dy) {
                  dy[0] = dx[0] - sum(exp(c.y[0]) * dx[0], c.attrs<SoftmaxAttrs>().axis, {.keepdims = true});
                })
                .stacking_jvp(),
};

constexpr Op kSoftmaxDerivative = {
    .name = "softmax_derivative",
    .doc =
        "The Jacobian of p = softmax(x), times v: yᵢ = (vᵢ - Σⱼ pⱼ vⱼ) pᵢ along an axis. The Jacobian is "
        "symmetric.",
    .args = {"p", "v"},
    .infer = infer_derivative,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::softmax_derivative(c.x[0], c.x[1], c.attrs<SoftmaxAttrs>().axis, y[0]);
        },
    .rule = Rule::custom({.x = 0b11},
                         [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
                           const Tensor dy = std::move(dys[0]).dense();
                           if (c.needs_gradient(0)) dx[0] = along_p(c, dy);
                           if (c.needs_gradient(1))
                             dx[1] = softmax_derivative(c.x[0], dy, c.attrs<SoftmaxAttrs>().axis);
                         }),
};

constexpr Op kLessShare = {
    .name = "less_share",
    .doc = "v - exp(log_share)·total in one pass. Used by the gradient of log_softmax.",
    .args = {"v", "total", "log_share"},
    .infer = elementwise,
    .forward = map([](auto v, auto total, auto log_share) { return v - exp(log_share) * total; }),
    .rule = partials([](auto, auto, auto) { return 1; },
                     [](auto, auto, auto log_share) { return -exp(log_share); },
                     [](auto, auto total, auto log_share) { return -exp(log_share) * total; }),
};

constexpr const Op* softmax_table[] = {&kSoftmax, &kLogSoftmax, &kSoftmaxDerivative, &kLessShare};

Tensor log_softmax_derivative(Operand v, Operand total, Operand log_share) {
  return kLessShare(v, total, log_share);
}

Tensor softmax_along(const Op& op, const Tensor& x, int axis) {
  return op(x, SoftmaxAttrs{checked_axis(op, axis, x.ndim()) - x.ndim()});
}

}   // namespace

Tensor softmax_derivative(const Tensor& y, const Tensor& v, int axis) {
  return kSoftmaxDerivative(y, v, SoftmaxAttrs{axis});
}
Tensor softmax(const Tensor& x, int axis) { return softmax_along(kSoftmax, x, axis); }
Tensor log_softmax(const Tensor& x, int axis) { return softmax_along(kLogSoftmax, x, axis); }

std::span<const Op* const> softmax_ops() { return softmax_table; }

}   // namespace tapedeck
