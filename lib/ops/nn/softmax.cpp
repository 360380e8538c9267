// Softmax along an axis. In: logits. Out: probabilities, or their logarithms.
#include "ops/nn/softmax.h"

#include "kernels/nn/softmax.h"
#include "op/elementwise.h"
#include "op/rules.h"
#include "ops/axes.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

Tensor log_softmax_derivative(Operand v, Operand total, Operand log_share);

struct SoftmaxAttrs {
  int axis;
};
OwnedAttrs along(int axis) { return Attrs(SoftmaxAttrs{axis}); }

Spec infer_softmax(const Call& c) {
  require_floating(c, 0);
  require_axes(c, -c.attrs<SoftmaxAttrs>().axis);
  return c.x[0].spec();
}

// v has p's shape behind any axes in front.
Spec infer_derivative(const Call& c) {
  const Spec p = infer_softmax(c);
  const Tensor& v = c.x[1];
  require_one_dtype(c);
  if (v.ndim() < p.shape.ndim() ||
      Shape(v.shape().dims().last(static_cast<std::size_t>(p.shape.ndim()))) != p.shape)
    throw_shape_error(c, "v does not end with the shape of p");
  return v.spec();
}

// The part of softmax_derivative's gradient that p gets.
Tensor along_p(const Call& c, const Tensor& dy) {
  const Tensor &p = c.x[0], &v = c.x[1];
  const int axis = c.attrs<SoftmaxAttrs>().axis;
  const Tensor of_all = dy * (v - sum(v * p, axis, true)) - v * sum(dy * p, axis, true);
  std::vector<int> extra;   // axes of v alone
  for (int d = p.ndim(); d < v.ndim(); ++d)
    extra.push_back(-1 - d);
  return extra.empty() ? of_all : sum(of_all, extra);
}

constexpr Op table[] = {
    {.name = "softmax",
     .doc = "Exponentials over their sum along an axis: yᵢ = exp(xᵢ) / Σⱼ exp(xⱼ).",
     .tensorflow = "Softmax",
     .args = {"x"},
     .infer = infer_softmax,
     .forward = [](const Call& c,
                   std::span<Tensor> y) { kernels::softmax(c.x[0], c.attrs<SoftmaxAttrs>().axis, y[0]); },
     .rule = stacking_jvp(custom(
         {.y = true},
         [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
           dx[0] = softmax_derivative(c.y[0], std::move(dy[0]).dense(), c.attrs<SoftmaxAttrs>().axis);
         },
         [](const Call& c, Refs dx, std::span<Tensor> dy) {
           dy[0] = softmax_derivative(c.y[0], dx[0], c.attrs<SoftmaxAttrs>().axis);
         })),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, -2, 2)}, .attrs = along(-1)},
               {.inputs = {uniform({2, 3, 5}, -2, 2)}, .attrs = along(-1)},
               {.inputs = {uniform({2, 1}, -2, 2)}, .attrs = along(-1)},
               {.inputs = {uniform({0, 3}, -2, 2)}, .attrs = along(-1)},
               {.inputs = {uniform({2, 3, 37}, -2, 2)}, .attrs = along(-2)},
               {.inputs = {uniform({5, 130}, -2, 2)}, .attrs = along(-2)},
               {.inputs = {f64({{1, 2, 3}, {-1, 0, 0.5}})},
                .attrs = along(-2),
                .expected = {f64({{0.8807970779778823, 0.8807970779778823, 0.9241418199787566},
                                  {0.11920292202211755, 0.11920292202211755, 0.07585818002124356}})},
                .oracle = "np.exp(x) / np.exp(x).sum(-2, keepdims=True)"},
               {.inputs = {f64({{1, 2, 3}, {-1, 0, 0.5}})},
                .attrs = along(-1),
                .expected = {f64({{0.09003057317038043, 0.24472847105479767, 0.6652409557748218},
                                  {0.12195165230972886, 0.33149896042409155, 0.5465493872661796}})},
                .oracle = "np.exp(x) / np.exp(x).sum(-1, keepdims=True)"}};
         }},

    {.name = "log_softmax",
     .doc = "Logarithm of the softmax along an axis: yᵢ = xᵢ - log Σⱼ exp(xⱼ).",
     .tensorflow = "LogSoftmax",
     .args = {"x"},
     .infer = infer_softmax,
     .forward = [](const Call& c,
                   std::span<Tensor> y) { kernels::log_softmax(c.x[0], c.attrs<SoftmaxAttrs>().axis, y[0]); },
     .rule = stacking_jvp(custom(
         {.y = true},
         [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
           const Tensor dy = std::move(dys[0]).dense();
           dx[0] = log_softmax_derivative(dy, sum(dy, c.attrs<SoftmaxAttrs>().axis, true), c.y[0]);
         },
         [](const Call& c, Refs dx, std::span<Tensor> dy) {
           dy[0] = dx[0] - sum(exp(c.y[0]) * dx[0], c.attrs<SoftmaxAttrs>().axis, true);
         })),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, -2, 2)}, .attrs = along(-1)},
               {.inputs = {uniform({2, 3, 5}, -2, 2)}, .attrs = along(-1)},
               {.inputs = {uniform({0, 3}, -2, 2)}, .attrs = along(-1)},
               {.inputs = {uniform({2, 3, 37}, -2, 2)}, .attrs = along(-2)},
               {.inputs = {uniform({5, 130}, -2, 2)}, .attrs = along(-2)},
               {.inputs = {f64({{1, 2, 3}, {-1, 0, 0.5}})},
                .attrs = along(-2),
                .expected = {f64({{-0.1269280110429726, -0.1269280110429726, -0.07888973429254956},
                                  {-2.1269280110429727, -2.1269280110429727, -2.5788897342925496}})},
                .oracle = "x - np.log(np.exp(x).sum(-2, keepdims=True))"},
               {.inputs = {f64({{1, 2, 3}, {-1, 0, 0.5}})},
                .attrs = along(-1),
                .expected = {f64({{-2.4076059644443806, -1.4076059644443801, -0.40760596444438046},
                                  {-2.1041306053367284, -1.1041306053367281, -0.6041306053367282}})},
                .oracle = "x - np.log(np.exp(x).sum(-1, keepdims=True))"}};
         }},

    {.name = "softmax_derivative",
     .doc = "The derivative of softmax, whose value is p, in direction v: yᵢ = (vᵢ - Σⱼ pⱼ vⱼ) pᵢ along an "
            "axis. It is symmetric.",
     .args = {"p", "v"},
     .infer = infer_derivative,
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           kernels::softmax_derivative(c.x[0], c.x[1], c.attrs<SoftmaxAttrs>().axis, y[0]);
         },
     .rule = custom({.x = 0b11},
                    [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
                      const Tensor dy = std::move(dys[0]).dense();
                      if (c.needs(0)) dx[0] = along_p(c, dy);
                      if (c.needs(1)) dx[1] = softmax_derivative(c.x[0], dy, c.attrs<SoftmaxAttrs>().axis);
                    }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 5}, 0, 1), uniform({2, 3, 5}, -2, 2, 1)}, .attrs = along(-1)},
               {.inputs = {uniform({37}, 0, 1), uniform({2, 37}, -2, 2, 1)}, .attrs = along(-1)},
               {.inputs = {uniform({2, 300, 3}, 0, 0.01), uniform({2, 300, 3}, -2, 2, 1)},
                .attrs = along(-2)},
               {.inputs = {uniform({5, 130}, 0, 1), uniform({3, 5, 130}, -2, 2, 1)}, .attrs = along(-2)},
               {.inputs = {uniform({0, 3}, 0, 1), uniform({0, 3}, -2, 2, 1)}, .attrs = along(-1)},
               {.inputs = {f64({{0.5, 0.5}, {0.25, 0.75}}), f64({{1, 2}, {-3, 4}})},
                .attrs = along(-1),
                .expected = {f64({{-0.25, 0.25}, {-1.3125, 1.3125}})},
                .oracle = "(v - (p * v).sum(-1, keepdims=True)) * p"},
               {.inputs = {f64({{0.5, 0.25}, {0.5, 0.75}}), f64({{1, -3}, {2, 4}})},
                .attrs = along(-2),
                .expected = {f64({{-0.25, -1.3125}, {0.25, 1.3125}})},
                .oracle = "(v - (p * v).sum(-2, keepdims=True)) * p"}};
         }},

    {.name = "less_share",
     .doc = "v - exp(log_share)·total in one pass. The derivative of log_softmax is made of it.",
     .args = {"v", "total", "log_share"},
     .infer = elementwise,
     .forward = map([](auto v, auto total, auto log_share) { return v - exp(log_share) * total; }),
     .rule = partials([](auto, auto, auto) { return 1; },
                      [](auto, auto, auto log_share) { return -exp(log_share); },
                      [](auto, auto total, auto log_share) { return -exp(log_share) * total; }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -2, 2), uniform({3, 1}, -2, 2, 1), uniform({3, 37}, -2, 0, 2)}},
               {.inputs = {f64({{1, 2}, {4, 5}}), tensor(std::vector<double>{3, -2}, {2, 1}),
                           f64({{-1, -0.5}, {0, -2}})},
                .expected = {f64({{-0.103638323514327, 0.18040802086209973}, {6, 5.270670566473226}})},
                .oracle = "v - np.exp(log_share) * total"}};
         }},
};

Tensor log_softmax_derivative(Operand v, Operand total, Operand log_share) {
  return find(table, "less_share")(v, total, log_share);
}

Tensor softmax_along(const Op& op, const Tensor& x, int axis) {
  return op.with(SoftmaxAttrs{checked_axis(op, axis, x.ndim()) - x.ndim()}, x);
}

}   // namespace

Tensor softmax_derivative(const Tensor& y, const Tensor& v, int axis) {
  return find(table, "softmax_derivative").with(SoftmaxAttrs{axis}, y, v);
}
Tensor softmax(const Tensor& x, int axis) { return softmax_along(find(table, "softmax"), x, axis); }
Tensor log_softmax(const Tensor& x, int axis) { return softmax_along(find(table, "log_softmax"), x, axis); }

std::span<const Op> softmax_ops() { return table; }

}   // namespace tapedeck
