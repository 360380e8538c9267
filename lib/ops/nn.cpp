// Neural networks. In: activations or logits. Out: activations, probabilities or losses.
#include <numeric>

#include "autodiff/rules.h"
#include "base/format.h"
#include "kernels/map.h"
#include "kernels/softmax.h"
#include "ops/infer.h"
#include "ops/samples.h"
#include "ops/softmax.h"
#include "tensor/storage.h"

namespace tapedeck {
namespace {

using namespace samples;

Spec infer_cross_entropy(const Call& c) {
  const Tensor &labels = c.x[0], &logits = c.x[1];
  require_indices(c, 0);
  require_floating(c, 1);
  if (logits.ndim() == 0 || Shape(logits.shape().dims().first(static_cast<std::size_t>(logits.ndim() - 1))) != labels.shape())
    throw_shape_error(c, "labels do not have the shape of logits without its last axis");
  return {logits.dtype(), labels.shape()};
}

Spec infer_dense_cross_entropy(const Call& c) {
  const Tensor &labels = c.x[0], &logits = c.x[1];
  require_floating(c, 1);
  if (labels.dtype() != logits.dtype()) throw_dtype_error(c, "dtypes differ");
  if (logits.ndim() == 0 || labels.shape() != logits.shape()) throw_shape_error(c, "labels and logits do not have one shape of rank 1 or more");
  return {logits.dtype(), Shape(logits.shape().dims().first(static_cast<std::size_t>(logits.ndim() - 1)))};
}

[[noreturn]] void throw_bad_label(const Call& c, std::int64_t label, std::int64_t position, std::int64_t classes) {
  const Shape& shape = c.x[0].shape();
  Shape index = shape;
  for (int d = shape.ndim(); d-- > 0; position /= shape[d]) index.set(d, position % shape[d]);
  throw_error<ShapeError>("{}: label {} at {} is out of range for {} classes: labels is {}, logits is {}", c.op.name, label, index, classes, c.x[0].spec(), c.x[1].spec());
}

void check_labels(const Call& c, std::int64_t classes) {
  visit_indices(c.x[0], [&](const auto labels) {
    for (std::size_t i = 0; i < labels.size(); ++i)
      if (labels[i] < 0 || labels[i] >= classes) throw_bad_label(c, labels[i], static_cast<std::int64_t>(i), classes);
  });
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

constexpr Op table[] = {
    {.name = "relu",
     .doc = "x where it is positive, else 0.",
     .tensorflow = "Relu",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return maximum(x, 0); }),
     .rule = partials([](auto, auto y) { return where(y > 0, 1, 0); }),
     .samples = [] {
       return std::vector<Sample>{{.inputs = {distinct({3, 5})}},
                                  {.inputs = {f64({-1.5, -0.25, 0.5, 2})}, .expected = {f64({0, 0, 0.5, 2})}, .oracle = "np.maximum(x, 0)"}};
     }},

    {.name = "leaky_relu",
     .doc = "x where it is positive, else alpha · x.",
     .tensorflow = "LeakyRelu",
     .args = {"x", "alpha"},
     .infer = elementwise,
     .forward = map([](auto x, auto alpha) { return where(x > 0, x, alpha * x); }),
     .rule = partials([](auto x, auto alpha) { return where(x > 0, 1, alpha); },
                      [](auto x, auto) { return where(x > 0, 0, x); }),
     .samples = [] {
       return std::vector<Sample>{{.inputs = {distinct({2, 3}), uniform({2, 3}, 0.1, 0.3)}},
                                  {.inputs = {f64({-1.5, -0.25, 0.5, 2}), f64(0.2)}, .expected = {f64({-0.3, -0.05, 0.5, 2})}, .oracle = "np.where(x > 0, x, alpha * x)"}};
     }},

    {.name = "softplus",
     .doc = "log(1 + eˣ), computed without overflow.",
     .tensorflow = "Softplus",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return maximum(x, 0) + log1p(exp(-abs(x))); }),
     .rule = partials([](auto x) { return sigmoid(x); }),
     .samples = [] {
       return of_one(-2, 2, signs(), f64({0.2014132779827524, 0.5759394198788437, 0.9740769841801068, 2.1269280110429727}), "np.logaddexp(x, 0)");
     }},

    {.name = "softmax",
     .doc = "Exponentials over their sum along the last axis: yᵢ = exp(xᵢ) / Σⱼ exp(xⱼ).",
     .tensorflow = "Softmax",
     .args = {"x"},
     .infer = infer_rows,
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::softmax(c.x[0], y[0]); },
     .rule = custom(
         {.y = true},
         [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) { dx[0] = softmax_derivative(c.y[0], std::move(dy[0]).dense()); },
         [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = softmax_derivative(c.y[0], dx[0]); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({37}, -2, 2)}},
           {.inputs = {uniform({2, 3, 5}, -2, 2)}},
           {.inputs = {uniform({2, 1}, -2, 2)}},
           {.inputs = {uniform({0, 3}, -2, 2)}},
           {.inputs = {f64({{1, 2, 3}, {-1, 0, 0.5}})},
            .expected = {f64({{0.09003057317038043, 0.24472847105479767, 0.6652409557748218}, {0.12195165230972886, 0.33149896042409155, 0.5465493872661796}})},
            .oracle = "np.exp(x) / np.exp(x).sum(-1, keepdims=True)"}};
     }},

    {.name = "log_softmax",
     .doc = "Logarithm of the softmax along the last axis: yᵢ = xᵢ - log Σⱼ exp(xⱼ).",
     .tensorflow = "LogSoftmax",
     .args = {"x"},
     .infer = infer_rows,
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::log_softmax(c.x[0], y[0]); },
     .rule = custom(
         {.y = true},
         [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
           const Tensor dy = std::move(dys[0]).dense();
           dx[0] = dy - exp(c.y[0]) * sum(dy, -1, true);
         },
         [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = dx[0] - sum(exp(c.y[0]) * dx[0], -1, true); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({37}, -2, 2)}},
           {.inputs = {uniform({2, 3, 5}, -2, 2)}},
           {.inputs = {uniform({0, 3}, -2, 2)}},
           {.inputs = {f64({{1, 2, 3}, {-1, 0, 0.5}})},
            .expected = {f64({{-2.4076059644443806, -1.4076059644443801, -0.40760596444438046}, {-2.1041306053367284, -1.1041306053367281, -0.6041306053367282}})},
            .oracle = "x - np.log(np.exp(x).sum(-1, keepdims=True))"}};
     }},

    {.name = "sparse_softmax_cross_entropy",
     .doc = "Minus the log-probability of each row's label: y = log Σⱼ exp(logits[j]) - logits[label].",
     .tensorflow = "SparseSoftmaxCrossEntropyWithLogits",
     .args = {"labels", "logits"},
     .infer = infer_cross_entropy,
     .forward = run_cross_entropy,
     .rule = custom(
         {.x = 0b11},
         [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) { dx[1] = error_of(c) * expand_dims(std::move(dy[0]).dense(), -1); },
         [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = sum(error_of(c) * dx[1], -1); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {tensor(5, DType::i64), uniform({37}, -2, 2)}},
           {.inputs = {tensor({{0, 4, 2}, {1, 1, 3}}, DType::i32), uniform({2, 3, 5}, -2, 2)}},
           {.inputs = {tensor({2, 0}, DType::i64), f64({{1, 2, 3}, {-1, 0, 0.5}})},
            .expected = {f64({0.40760596444438046, 2.1041306053367284})},
            .oracle = "torch.nn.functional.cross_entropy(torch.tensor(logits), torch.tensor(labels), reduction='none').numpy()"}};
     }},

    {.name = "softmax_cross_entropy",
     .doc = "Minus the sum of labels times log-probabilities along the last axis: y = Σⱼ labelsⱼ · (log Σₖ exp(logitsₖ) - logitsⱼ).",
     .tensorflow = "SoftmaxCrossEntropyWithLogits",
     .args = {"labels", "logits"},
     .infer = infer_dense_cross_entropy,
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::dense_cross_entropy(c.x[0], c.x[1], y[0]); },
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
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({37}, 0, 1), uniform({37}, -2, 2, 1)}},
           {.inputs = {uniform({2, 3, 5}, -1, 1), uniform({2, 3, 5}, -2, 2, 1)}},
           {.inputs = {uniform({0, 3}, 0, 1), uniform({0, 3}, -2, 2)}},
           {.inputs = {f64({{0, 0.25, 0.75}, {1, 2, 0}}), f64({{1, 2, 3}, {-1, 0, 0.5}})},
            .expected = {f64({0.6576059644443805, 4.3123918160101855})},
            .oracle = "-(labels * (logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True))).sum(-1)"}};
     }},
};

// op works along the last axis.
Tensor along(const Op& op, const Tensor& x, int axis) {
  const int from_start = checked_axis(op, axis, x.ndim());
  if (from_start == x.ndim() - 1) return op(Operand(x));
  std::vector<int> swapped(static_cast<std::size_t>(x.ndim()));
  std::iota(swapped.begin(), swapped.end(), 0);
  std::swap(swapped[static_cast<std::size_t>(from_start)], swapped.back());
  return transpose(op(Operand(transpose(x, swapped))), swapped);
}

}  // namespace

Tensor relu(Operand x) { return find(table, "relu")(x); }
Tensor leaky_relu(Operand x, Operand alpha) { return find(table, "leaky_relu")(x, alpha); }
Tensor softplus(Operand x) { return find(table, "softplus")(x); }
Tensor softmax(const Tensor& x, int axis) { return along(find(table, "softmax"), x, axis); }
Tensor log_softmax(const Tensor& x, int axis) { return along(find(table, "log_softmax"), x, axis); }
Tensor sparse_softmax_cross_entropy(const Tensor& labels, const Tensor& logits) {
  const Tensor* x[] = {&labels, &logits};
  return find(table, "sparse_softmax_cross_entropy").execute({x, 2});
}
Tensor softmax_cross_entropy(const Tensor& labels, const Tensor& logits) {
  const Tensor* x[] = {&labels, &logits};
  return find(table, "softmax_cross_entropy").execute({x, 2});
}

Tensor bias_add(const Tensor& x, const Tensor& bias) {
  if (bias.ndim() != 1 || x.ndim() == 0 || bias.size() != x.shape()[x.ndim() - 1])
    throw_error<ShapeError>("bias_add: bias is not one row as long as the last axis of x: x is {}, bias is {}", x.spec(), bias.spec());
  return x + bias;
}

std::span<const Op> nn_ops() { return table; }

}  // namespace tapedeck
