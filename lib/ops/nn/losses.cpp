// Losses. In: logits or predictions, and labels. Out: a loss for each element, row or tensor.
#include "core/format.h"
#include "core/squeeze_advice.h"
#include "kernels/layout/index_check.h"
#include "kernels/nn/softmax.h"
#include "op/elementwise.h"
#include "op/rules.h"
#include "ops/axes.h"
#include "ops/elementwise/slopes.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Shape rows_of(const Tensor& logits) {
  return Shape(logits.shape().dims().first(static_cast<std::size_t>(logits.ndim() - 1)));
}

// expected: the shape that labels should have; predictions: the loss's name for the other operand.
[[noreturn]] void throw_apart(std::string_view loss, std::string_view what, const Tensor& labels,
                              const Shape& expected, std::string_view predictions, const Tensor& x) {
  throw_error<ShapeError>(
      "{}: {}: labels is {}, {} is {}; {}", loss, what, labels.spec(), predictions, x.spec(),
      squeeze_advice({"labels", labels.shape()}, {predictions, expected}, "reshape one of them"));
}

// Throws ShapeError unless both tensors have one shape; numbers are exempt. [n] and [n, 1] would broadcast to
// losses [n, n].
void require_one_shape(std::string_view loss, std::string_view name, const Operand& labels,
                       const Operand& predictions) {
  const Tensor *z = labels.tensor(), *x = predictions.tensor();
  if (z && x && z->defined() && x->defined() && z->shape() != x->shape())
    throw_apart(loss, fmt::format("labels and {} do not have one shape", name), *z, x->shape(), name, *x);
}

Spec infer_cross_entropy(const Call& c) {
  const Tensor &labels = c.x[0], &logits = c.x[1];
  if (is_floating(labels.dtype()) && is_integer(logits.dtype()))
    c.throw_dtype_error("labels, which are integers, come before logits");
  require_indices(c, 0);
  require_floating(c, 1);
  if (logits.ndim() == 0) c.throw_shape_error("logits has no axis of classes");
  if (const Shape rows = rows_of(logits); rows != labels.shape())
    throw_apart(c.op.name, "labels do not have the shape of logits without its last axis", labels, rows,
                "logits", logits);
  return {logits.dtype(), labels.shape()};
}

Spec infer_dense_cross_entropy(const Call& c) {
  const Tensor &labels = c.x[0], &logits = c.x[1];
  require_floating(c, 1);
  require_one_dtype(c);
  if (logits.ndim() == 0 || labels.shape() != logits.shape())
    throw_apart(c.op.name, "labels and logits do not have one shape of rank 1 or more", labels,
                logits.shape(), "logits", logits);
  return {logits.dtype(), rows_of(logits)};
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
  if (const auto o = kernels::first_outside(c.x[0], classes))
    throw_bad_label(c, o->index, o->position, classes);
}

void run_cross_entropy(const Call& c, std::span<Tensor> y) {
  const Tensor &labels = c.x[0], &logits = c.x[1];
  check_labels(c, logits.shape()[logits.ndim() - 1]);
  kernels::cross_entropy(labels, logits, y[0]);
}

// The derivative of each row's loss with respect to its logits.
Tensor error_of(const Call& c) {
  const Tensor &labels = c.x[0], &logits = c.x[1];
  return softmax(logits) - one_hot(labels, logits.shape()[logits.ndim() - 1], logits.dtype());
}

// Like error_of, for labels that are probabilities or any other weights.
Tensor dense_error_of(const Call& c) {
  const Tensor &labels = c.x[0], &logits = c.x[1];
  return softmax(logits) * sum(labels, -1, {.keepdims = true}) - labels;
}

constexpr Op kSparseSoftmaxCrossEntropy = {
    .name = "sparse_softmax_cross_entropy",
    .doc = "The negative log-probability of each row's label: y = log Σⱼ exp(logits[j]) - logits[label].",
    .tensorflow = "SparseSoftmaxCrossEntropyWithLogits",
    .args = {"labels", "logits"},
    .infer = infer_cross_entropy,
    .forward = run_cross_entropy,
    .rule = Rule::custom(
        {.x = 0b11},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[1] = error_of(c) * expand_dims(std::move(dy[0]).dense(), -1);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = sum(error_of(c) * dx[1], -1); }),
};

constexpr Op kSoftmaxCrossEntropy = {
    .name = "softmax_cross_entropy",
    .doc =
        "The negative sum of labels times log-probabilities along the last axis: y = Σⱼ labelsⱼ · (log "
        "Σₖ exp(logitsₖ) - logitsⱼ).",
    .tensorflow = "SoftmaxCrossEntropyWithLogits",
    .args = {"labels", "logits"},
    .infer = infer_dense_cross_entropy,
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::dense_cross_entropy(c.x[0], c.x[1], y[0]); },
    .rule = Rule::custom(
        {.x = 0b11},
        [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
          const Tensor dy = expand_dims(std::move(dys[0]).dense(), -1);
          if (c.needs_gradient(0)) dx[0] = -dy * log_softmax(c.x[1]);
          if (c.needs_gradient(1)) dx[1] = dy * dense_error_of(c);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          if (dx[0].defined()) dy[0] = -sum(log_softmax(c.x[1]) * dx[0], -1);
          if (!dx[1].defined()) return;
          const Tensor of_logits = sum(dense_error_of(c) * dx[1], -1);
          dy[0] = dy[0].defined() ? dy[0] + of_logits : of_logits;
        }),
};

constexpr Op kSigmoidCrossEntropy = {
    .name = "sigmoid_cross_entropy",
    .doc =
        "The negative log-likelihood of labels z under the probability sigmoid(x) of logits x: max(x, 0) "
        "- x z + log(1 + exp(-|x|)).",
    .args = {"labels", "logits"},
    .infer = elementwise,
    .forward = map([](auto z, auto x) { return maximum(x, 0) - x * z + log1p(exp(-abs(x))); }),
    .rule = partials([](auto, auto x) { return -x; },
                     [](auto z, auto x) {
                       const auto r = logistic(minimum(x, -x));
                       return where(x > 0, 1 - z - r, r - z);
                     }),
};

constexpr Op kHuber = {
    .name = "huber",
    .doc =
        "q (e - q / 2), where e = predictions - labels and q is e clamped to [-delta, delta]. This is "
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
};

constexpr Op kL2Loss = {
    .name = "l2_loss",
    .doc = "Half the sum of squares: Σᵢ xᵢ² / 2.",
    .tensorflow = "L2Loss",
    .args = {"x"},
    .infer =
        [](const Call& c) {
          require_floating(c, 0);
          return Spec{c.x[0].dtype(), {}};
        },
    .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = sum(square(c.x[0])) * 0.5; },
                Outputs::by_kernel},
    .rule = Rule::custom(
        {.x = 1},
        [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
          const Tensor dy = std::move(dys[0]).dense();
          Shape ones;
          for (int d = 0; d < c.x[0].ndim(); ++d)
            ones.push_back(1);
          dx[0] = c.x[0] * reshape(dy, behind_extra(dy, 0, ones));
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = sum(c.x[0] * dx[0]); }),
};

constexpr const Op* losses_table[] = {&kSparseSoftmaxCrossEntropy, &kSoftmaxCrossEntropy,
                                      &kSigmoidCrossEntropy, &kHuber, &kL2Loss};

// Throws DTypeError unless labels - predictions has a floating-point dtype. Leaves undefined tensors to the
// op.
void require_floating_difference(std::string_view name, const Operand& labels, const Operand& predictions) {
  const Tensor *z = labels.tensor(), *x = predictions.tensor();
  if ((!z && !x) || (z && !z->defined()) || (x && !x->defined())) return;
  const DType dtype = !x ? z->dtype() : !z ? x->dtype() : promote(z->dtype(), x->dtype());
  const bool fraction = (!z && !labels.integer()) || (!x && !predictions.integer());   // promotes integers
  if (!is_floating(dtype) && (is_complex(dtype) || !fraction))
    throw_error<DTypeError>("{}: takes f32, f64, f16 or bf16, use astype: labels and predictions are {}",
                            name, dtype);
}

// The mean of losses along their last axis.
Tensor mean_of_rows(std::string_view name, const Tensor& losses) {
  if (losses.ndim() == 0)
    throw_error<ShapeError>("{}: labels and predictions are of rank 0; the mean is along their last axis",
                            name);
  return mean(losses, -1);
}

}   // namespace

Tensor sparse_softmax_cross_entropy(const Tensor& labels, const Tensor& logits) {
  const Tensor* x[] = {&labels, &logits};
  return kSparseSoftmaxCrossEntropy({x, 2});
}
Tensor softmax_cross_entropy(const Tensor& labels, const Tensor& logits) {
  const Tensor* x[] = {&labels, &logits};
  return kSoftmaxCrossEntropy({x, 2});
}

Tensor sigmoid_cross_entropy(Operand labels, Operand logits) {
  require_one_shape("sigmoid_cross_entropy", "logits", labels, logits);
  return kSigmoidCrossEntropy(labels, logits);
}
Tensor l2_loss(const Tensor& x) {
  const Tensor* inputs[] = {&x};
  return kL2Loss({inputs, 1});
}

Tensor mean_squared_error(Operand labels, Operand predictions) {
  require_one_shape("mean_squared_error", "predictions", labels, predictions);
  require_floating_difference("mean_squared_error", labels, predictions);
  return mean_of_rows("mean_squared_error", squared_difference(labels, predictions));
}
Tensor huber_loss(Operand labels, Operand predictions, double delta) {
  if (!(delta > 0)) throw_error<ArgumentError>("huber_loss: delta is {}; use a positive one", delta);
  require_one_shape("huber_loss", "predictions", labels, predictions);
  require_floating_difference("huber_loss", labels, predictions);
  return mean_of_rows("huber_loss", kHuber(labels, predictions, Operand(delta)));
}

std::span<const Op* const> losses_ops() { return losses_table; }

}   // namespace tapedeck
