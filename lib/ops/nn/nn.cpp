// Probabilities and losses. In: logits or predictions, and labels. Out: probabilities, or a loss for each
// element, row or tensor.

#include "core/format.h"
#include "core/storage.h"
#include "kernels/elementwise/map.h"
#include "kernels/nn/softmax.h"
#include "kernels/random/random.h"
#include "op/rules.h"
#include "ops/axes.h"
#include "ops/layout/positions.h"
#include "ops/nn/softmax.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

Spec infer_cross_entropy(const Call& c) {
  const Tensor &labels = c.x[0], &logits = c.x[1];
  require_indices(c, 0);
  require_floating(c, 1);
  if (logits.ndim() == 0 ||
      Shape(logits.shape().dims().first(static_cast<std::size_t>(logits.ndim() - 1))) != labels.shape())
    throw_shape_error(c, "labels do not have the shape of logits without its last axis");
  return {logits.dtype(), labels.shape()};
}

Spec infer_dense_cross_entropy(const Call& c) {
  const Tensor &labels = c.x[0], &logits = c.x[1];
  require_floating(c, 1);
  require_one_dtype(c);
  if (logits.ndim() == 0 || labels.shape() != logits.shape())
    throw_shape_error(c, "labels and logits do not have one shape of rank 1 or more");
  return {logits.dtype(), Shape(logits.shape().dims().first(static_cast<std::size_t>(logits.ndim() - 1)))};
}

[[noreturn]] void throw_bad_label(const Call& c, std::int64_t label, std::int64_t position,
                                  std::int64_t classes) {
  const Shape& shape = c.x[0].shape();
  Shape index = shape;
  for (int d = shape.ndim(); d-- > 0; position /= shape[d])
    index.set(d, position % shape[d]);
  throw_error<ShapeError>("{}: label {} at {} is out of range for {} classes: labels is {}, logits is {}",
                          c.op.name, label, index, classes, c.x[0].spec(), c.x[1].spec());
}

void check_labels(const Call& c, std::int64_t classes) {
  if (const auto o = first_outside(c.x[0], classes)) throw_bad_label(c, o->index, o->position, classes);
}

void run_cross_entropy(const Call& c, std::span<Tensor> y) {
  const Tensor &labels = c.x[0], &logits = c.x[1];
  check_labels(c, logits.shape()[logits.ndim() - 1]);
  kernels::cross_entropy(labels, logits, y[0]);
}

// The derivative of each row's loss in its logits.
Tensor error_of(const Call& c) {
  const Tensor &labels = c.x[0], &logits = c.x[1];
  return softmax(logits) - one_hot(labels, logits.shape()[logits.ndim() - 1], logits.dtype());
}

// The same where labels are probabilities, or any other weights.
Tensor dense_error_of(const Call& c) {
  const Tensor &labels = c.x[0], &logits = c.x[1];
  return softmax(logits) * sum(labels, -1, true) - labels;
}

struct DropoutAttrs {
  double rate;
};
Tensor dropped_out(const DropoutAttrs& a, const Tensor& x, const Tensor& dropped);
Tensor less_share(Operand v, Operand total, Operand log_share);

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
           dx[0] = less_share(dy, sum(dy, c.attrs<SoftmaxAttrs>().axis, true), c.y[0]);
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

    {.name = "sparse_softmax_cross_entropy",
     .doc = "Minus the log-probability of each row's label: y = log Σⱼ exp(logits[j]) - logits[label].",
     .tensorflow = "SparseSoftmaxCrossEntropyWithLogits",
     .args = {"labels", "logits"},
     .infer = infer_cross_entropy,
     .forward = run_cross_entropy,
     .rule = custom(
         {.x = 0b11},
         [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
           dx[1] = error_of(c) * expand_dims(std::move(dy[0]).dense(), -1);
         },
         [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = sum(error_of(c) * dx[1], -1); }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {tensor(5, DType::i64), uniform({37}, -2, 2)}},
               {.inputs = {tensor({{0, 4, 2}, {1, 1, 3}}, DType::i32), uniform({2, 3, 5}, -2, 2)}},
               {.inputs = {tensor({2, 0}, DType::i64), f64({{1, 2, 3}, {-1, 0, 0.5}})},
                .expected = {f64({0.40760596444438046, 2.1041306053367284})},
                .oracle = "torch.nn.functional.cross_entropy(torch.tensor(logits), torch.tensor(labels), "
                          "reduction='none').numpy()"}};
         }},

    {.name = "softmax_cross_entropy",
     .doc = "Minus the sum of labels times log-probabilities along the last axis: y = Σⱼ labelsⱼ · (log Σₖ "
            "exp(logitsₖ) - logitsⱼ).",
     .tensorflow = "SoftmaxCrossEntropyWithLogits",
     .args = {"labels", "logits"},
     .infer = infer_dense_cross_entropy,
     .forward = [](const Call& c,
                   std::span<Tensor> y) { kernels::dense_cross_entropy(c.x[0], c.x[1], y[0]); },
     .rule = custom(
         {.x = 0b11},
         [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
           const Tensor dy = expand_dims(std::move(dys[0]).dense(), -1);
           if (c.needs(0)) dx[0] = -dy * log_softmax(c.x[1]);
           if (c.needs(1)) dx[1] = dy * dense_error_of(c);
         },
         [](const Call& c, Refs dx, std::span<Tensor> dy) {
           if (dx[0].defined()) dy[0] = -sum(log_softmax(c.x[1]) * dx[0], -1);
           if (!dx[1].defined()) return;
           const Tensor of_logits = sum(dense_error_of(c) * dx[1], -1);
           dy[0] = dy[0].defined() ? dy[0] + of_logits : of_logits;
         }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({37}, 0, 1), uniform({37}, -2, 2, 1)}},
               {.inputs = {uniform({2, 3, 5}, -1, 1), uniform({2, 3, 5}, -2, 2, 1)}},
               {.inputs = {uniform({0, 3}, 0, 1), uniform({0, 3}, -2, 2)}},
               {.inputs = {f64({{0, 0.25, 0.75}, {1, 2, 0}}), f64({{1, 2, 3}, {-1, 0, 0.5}})},
                .expected = {f64({0.6576059644443805, 4.3123918160101855})},
                .oracle =
                    "-(labels * (logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True))).sum(-1)"}};
         }},
    {.name = "sigmoid_cross_entropy",
     .doc = "Minus the log-probability of labels z under sigmoid(x) of logits x: max(x, 0) - x z + log(1 + "
            "exp(-|x|)).",
     .args = {"labels", "logits"},
     .infer = elementwise,
     .forward = map([](auto z, auto x) { return maximum(x, 0) - x * z + log1p(exp(-abs(x))); }),
     .rule = partials([](auto, auto x) { return -x; }, [](auto z, auto x) { return sigmoid(x) - z; }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, 0, 1), uniform({2, 3}, -3, 3, 1)}},
               {.inputs = {f64({0, 1, 0.25, 0.75}), signs()},
                .expected = {f64(
                    {0.20141327798275246, 0.8259394198788437, 0.8490769841801067, 0.6269280110429726})},
                .oracle = "torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor(logits), "
                          "torch.tensor(labels), reduction='none').numpy()"}};
         }},

    {.name = "huber",
     .doc = "q (e - q / 2), where e = predictions - labels and q is e moved between -delta and delta: "
            "huber_loss before the mean.",
     .args = {"labels", "predictions", "delta"},
     .infer = elementwise,
     .forward = map([](auto labels, auto predictions, auto delta) {
       const auto e = predictions - labels, q = minimum(maximum(e, -delta), delta);
       return q * (e - 0.5 * q);
     }),
     .rule = partials([](auto labels, auto predictions,
                         auto delta) { return minimum(maximum(labels - predictions, -delta), delta); },
                      [](auto labels, auto predictions, auto delta) {
                        return minimum(maximum(predictions - labels, -delta), delta);
                      },
                      [](auto labels, auto predictions, auto delta) {
                        return maximum(abs(predictions - labels) - delta, 0);
                      }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({2, 3}), distinct({2, 3}, 1) + 0.045, f64(0.3)}},
               {.inputs = {f64({0, 1, 0.25, 0.75}), signs(), f64(0.75)},
                .expected = {f64({0.84375, 0.65625, 0.03125, 0.65625})},
                .oracle = "torch.nn.functional.huber_loss(torch.tensor(predictions), torch.tensor(labels), "
                          "delta=float(delta), reduction='none').numpy()"}};
         }},

    {.name = "l2_loss",
     .doc = "Half the sum of squares: Σᵢ xᵢ² / 2.",
     .tensorflow = "L2Loss",
     .args = {"x"},
     .infer =
         [](const Call& c) {
           require_floating(c, 0);
           return Spec{c.x[0].dtype(), {}};
         },
     .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = sum(square(c.x[0])) * 0.5; }, Outputs::own},
     .rule = custom(
         {.x = 1},
         [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
           const Tensor dy = std::move(dys[0]).dense();
           Shape ones;
           for (int d = 0; d < c.x[0].ndim(); ++d)
             ones.push_back(1);
           dx[0] = c.x[0] * reshape(dy, behind_extra(dy, 0, ones));
         },
         [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = sum(c.x[0] * dx[0]); }),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({3, 37}, -1, 1)}},
                                      {.inputs = {uniform({}, -1, 1)}},
                                      {.inputs = {uniform({0, 3}, -1, 1)}},
                                      {.inputs = {f64({{1, -2}, {3, 0.5}})},
                                       .expected = {f64(7.125)},
                                       .oracle = "np.sum(x**2) / 2"}};
         }},

    {.name = "dropout",
     .doc = "0 for the elements that are dropped, a share `rate`, and x / (1 - rate) for the others.",
     .args = {"x", "dropped"},
     .infer =
         [](const Call& c) {
           const Tensor &x = c.x[0], &dropped = c.x[1];
           require_floating(c, 0);
           if (dropped.dtype() != DType::boolean) throw_dtype_error(c, "dropped is not bool");
           if (x.ndim() < dropped.ndim() ||
               Shape(x.shape().dims().last(static_cast<std::size_t>(dropped.ndim()))) != dropped.shape())
             throw_shape_error(c, "x does not end in the shape of dropped");
           return x.spec();
         },
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           kernels::drop(c.x[0], c.x[1], 1 / (1 - c.attrs<DropoutAttrs>().rate), y[0]);
         },
     .rule = linear(
         [](const Call& c, const Tensor& dy) { return dropped_out(c.attrs<DropoutAttrs>(), dy, c.x[1]); },
         {.x = 0b10}),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({3, 37}, -1, 1), uniform({3, 37}, -1, 1, 1) < -0.3},
                .attrs = Attrs(DropoutAttrs{0.35})},
               {.inputs = {uniform({}, -1, 1), tensor(0, DType::boolean)}, .attrs = Attrs(DropoutAttrs{0})},
               {.inputs = {uniform({0, 3}, -1, 1), zeros({0, 3}, DType::boolean)},
                .attrs = Attrs(DropoutAttrs{0.3})},
               {.inputs = {f64({1, 2, 3, 4}), tensor({0, 1, 0, 0}, DType::boolean)},
                .attrs = Attrs(DropoutAttrs{0.2}),
                .expected = {f64({1.25, 0, 3.75, 5})},
                .oracle = "np.where(dropped, 0, x / 0.8)"}};
         }},
};

Tensor less_share(Operand v, Operand total, Operand log_share) {
  return find(table, "less_share")(v, total, log_share);
}
Tensor dropped_out(const DropoutAttrs& a, const Tensor& x, const Tensor& dropped) {
  return find(table, "dropout").with(a, x, dropped);
}

Tensor softmax_along(const Op& op, const Tensor& x, int axis) {
  return op.with(SoftmaxAttrs{checked_axis(op, axis, x.ndim()) - x.ndim()}, x);
}

// The mean of losses along their last axis.
Tensor mean_of_rows(std::string_view name, const Tensor& losses) {
  if (losses.ndim() == 0)
    throw_error<ShapeError>("{}: labels and predictions are of rank 0; the mean is along their last axis",
                            name);
  return mean(losses, -1);
}

}   // namespace

Tensor softmax_derivative(const Tensor& y, const Tensor& v, int axis) {
  return find(table, "softmax_derivative").with(SoftmaxAttrs{axis}, y, v);
}
Tensor softmax(const Tensor& x, int axis) { return softmax_along(find(table, "softmax"), x, axis); }
Tensor log_softmax(const Tensor& x, int axis) { return softmax_along(find(table, "log_softmax"), x, axis); }
Tensor sparse_softmax_cross_entropy(const Tensor& labels, const Tensor& logits) {
  const Tensor* x[] = {&labels, &logits};
  return find(table, "sparse_softmax_cross_entropy").execute({x, 2});
}
Tensor softmax_cross_entropy(const Tensor& labels, const Tensor& logits) {
  const Tensor* x[] = {&labels, &logits};
  return find(table, "softmax_cross_entropy").execute({x, 2});
}

Tensor sigmoid_cross_entropy(Operand labels, Operand logits) {
  return find(table, "sigmoid_cross_entropy")(labels, logits);
}
Tensor l2_loss(const Tensor& x) {
  const Tensor* inputs[] = {&x};
  return find(table, "l2_loss").execute({inputs, 1});
}

Tensor mean_squared_error(Operand labels, Operand predictions) {
  return mean_of_rows("mean_squared_error", squared_difference(labels, predictions));
}
Tensor huber_loss(Operand labels, Operand predictions, double delta) {
  if (!(delta > 0)) throw_error<ArgumentError>("huber_loss: delta is {}; use a positive one", delta);
  return mean_of_rows("huber_loss", find(table, "huber")(labels, predictions, Operand(delta)));
}

Tensor dropout(const Tensor& x, double rate, random::Key key) {
  if (!(rate >= 0 && rate < 1))
    throw_error<ArgumentError>("dropout: rate is {}; use 0 or more and less than 1", rate);
  if (!is_floating(x.dtype()))
    throw_error<DTypeError>("dropout: takes f32 or f64, use astype: x is {}", x.spec());
  return dropped_out({rate}, x, random::uniform(x.shape(), key) < rate);
}

Tensor bias_add(const Tensor& x, const Tensor& bias) {
  if (bias.ndim() != 1 || x.ndim() == 0 || bias.size() != x.shape()[x.ndim() - 1])
    throw_error<ShapeError>(
        "bias_add: bias is not one row as long as the last axis of x: x is {}, bias is {}", x.spec(),
        bias.spec());
  return x + bias;
}

std::span<const Op> nn_ops() { return table; }

}   // namespace tapedeck
