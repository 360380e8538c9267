// Losses of labels and predictions, one value per example: the last axis is reduced, and mean() of the result
// is the number that Keras reports. Labels have the shape of predictions, of rank 1 or more, unless stated
// otherwise. Nothing broadcasts, so that [n] with [n, 1] is an error. Predictions are floating-point; labels
// of another dtype, including integers and bools, are converted to the dtype of the predictions. Both have
// gradients. Other shapes throw ShapeError, other dtypes DTypeError, options out of range ArgumentError.
//
// Losses that are ops are in tapedeck/ops/losses.h: sparse_softmax_cross_entropy, softmax_cross_entropy and
// sigmoid_cross_entropy (of logits), mean_squared_error, huber_loss; ctc_loss is in tapedeck/ops/rnn.h.
#pragma once
#include <cstdint>
#include <optional>

#include "tapedeck/tensor.h"

namespace tapedeck::nn {

/// The mean of |labels - predictions|.
TAPEDECK_EXPORT Tensor mean_absolute_error(const Tensor& labels, const Tensor& predictions);
/// 100 times the mean of |labels - predictions| / max(|labels|, 1e-7).
TAPEDECK_EXPORT Tensor mean_absolute_percentage_error(const Tensor& labels, const Tensor& predictions);
/// The mean of (log(1 + labels) - log(1 + predictions))², where negative numbers count as 0.
TAPEDECK_EXPORT Tensor mean_squared_logarithmic_error(const Tensor& labels, const Tensor& predictions);
/// The mean of log cosh(e), e = predictions - labels: e² / 2 for small errors, |e| - log 2 for large ones.
/// Free of overflow and cancellation.
TAPEDECK_EXPORT Tensor log_cosh(const Tensor& labels, const Tensor& predictions);
/// huber_loss with delta = beta, divided by beta: the mean of e² / (2 beta) if |e| ≤ beta, else |e| - beta /
/// 2. With beta = 0, it is mean_absolute_error.
TAPEDECK_EXPORT Tensor smooth_l1_loss(const Tensor& labels, const Tensor& predictions, double beta = 1);

/// labels · (1 - smoothing) + smoothing / classes, as label_smoothing computes below. For losses of logits:
/// sigmoid_cross_entropy(smooth_labels(labels, 0.1, 2), logits). Throws DTypeError unless labels are
/// floating-point.
TAPEDECK_EXPORT Tensor smooth_labels(const Tensor& labels, double smoothing, std::int64_t classes);

/// Options of losses whose predictions are probabilities.
struct CrossEntropyOptions {
  double label_smoothing =
      0;   // 0 to 1: the fraction of each label that is spread over all classes, or over both
  /// Probabilities are clipped to [epsilon, 1 - epsilon], and have no gradient outside. Requires 0 < epsilon
  /// < 0.5.
  double epsilon = 1e-7;
};

/// The mean of -z log p - (1 - z) log(1 - p), for labels z from 0 to 1 and probabilities p. To train, prefer
/// mean(sigmoid_cross_entropy(labels, logits), -1), which is exact for any logits.
TAPEDECK_EXPORT Tensor binary_cross_entropy(const Tensor& labels, const Tensor& probabilities,
                                            const CrossEntropyOptions& options = {});
/// -Σ labels · log p for labels that are probabilities, such as one-hot ones, and p = probabilities / Σ
/// probabilities. To train, prefer softmax_cross_entropy of logits.
TAPEDECK_EXPORT Tensor categorical_cross_entropy(const Tensor& labels, const Tensor& probabilities,
                                                 const CrossEntropyOptions& options = {});

/// Options of losses whose labels are indices of classes.
struct ClassLabelOptions {
  /// Examples with this label have the loss 0, but count in a mean: for the mean of the others, divide the
  /// sum by their number. The label need not be the index of a class.
  std::optional<std::int64_t> ignore_index = {};
  /// [classes]: the factor of the loss for each label; undefined: 1. Differentiable, too.
  Tensor class_weights = {};
};

/// -log p[label] for labels of i32 or i64 [...] and p = probabilities / Σ probabilities, [..., classes],
/// clipped to [1e-7, 1 - 1e-7]. To train, prefer sparse_softmax_cross_entropy of logits. Throws ShapeError
/// also for labels out of range.
TAPEDECK_EXPORT Tensor sparse_categorical_cross_entropy(const Tensor& labels, const Tensor& probabilities,
                                                        const ClassLabelOptions& options = {});
/// -log_probabilities[label], for labels of i32 or i64 [...] and log_probabilities [..., classes], such as
/// log_softmax(logits): PyTorch's cross_entropy with these options. Throws ShapeError also for labels out of
/// range.
TAPEDECK_EXPORT Tensor nll_loss(const Tensor& labels, const Tensor& log_probabilities,
                                const ClassLabelOptions& options = {});

/// Options of focal losses.
struct FocalOptions {
  double gamma = 2;   // ≥ 0: how strongly the weight of well-predicted examples is reduced
  /// The factor of positive labels; the factor of negative labels is 1 - alpha. In the categorical loss, one
  /// factor for all, for which Keras uses 0.25.
  std::optional<double> alpha = {};
  bool logits = false;          // predictions are logits, not probabilities
  double label_smoothing = 0;   // as in CrossEntropyOptions
  double epsilon = 1e-7;        // as in CrossEntropyOptions
};

/// The mean of (1 - q)^gamma · binary cross-entropy, where q = z p + (1 - z)(1 - p) is the probability of the
/// label: Lin et al. 2017. With logits, it is accurate for all values.
TAPEDECK_EXPORT Tensor binary_focal_cross_entropy(const Tensor& labels, const Tensor& predictions,
                                                  const FocalOptions& options = {});
/// -Σ labels · (1 - p)^gamma · log p, for probabilities p, which are divided by their sum, or
/// softmax(logits).
TAPEDECK_EXPORT Tensor categorical_focal_cross_entropy(const Tensor& labels, const Tensor& predictions,
                                                       const FocalOptions& options = {});

/// Σ labels · log(labels / max(predictions, 1e-7)): the Kullback-Leibler divergence of distributions. Labels
/// of 0 add 0, with a gradient of 0.
TAPEDECK_EXPORT Tensor kl_divergence(const Tensor& labels, const Tensor& predictions);
/// The mean of predictions - labels · log(predictions + 1e-7): up to a constant the negative log-likelihood
/// of counts under Poisson distributions with these means.
TAPEDECK_EXPORT Tensor poisson(const Tensor& labels, const Tensor& predictions);
/// Options of gaussian_nll_loss.
struct GaussianNllOptions {
  bool full = false;       // include the constant log(2π) / 2
  double epsilon = 1e-6;   // smaller variances are replaced by this, without a gradient; > 0
};
/// The mean of (log v + (labels - means)² / v) / 2: up to a constant the negative log-likelihood under normal
/// distributions with these means and variances v, all of one shape.
TAPEDECK_EXPORT Tensor gaussian_nll_loss(const Tensor& labels, const Tensor& means, const Tensor& variances,
                                         const GaussianNllOptions& options = {});
/// Minus the cosine of the angle between both, with Keras's sign: -1 for equal directions, 1 for opposite
/// ones; 0 if one of them is 0 or has no elements. Squares neither overflow nor underflow.
TAPEDECK_EXPORT Tensor cosine_similarity(const Tensor& labels, const Tensor& predictions);

/// The mean of max(1 - labels · predictions, 0) and of its square, for labels of -1 and 1. Convert labels of
/// 0 and 1 by 2 * labels - 1.
TAPEDECK_EXPORT Tensor hinge(const Tensor& labels, const Tensor& predictions);
TAPEDECK_EXPORT Tensor squared_hinge(const Tensor& labels, const Tensor& predictions);
/// max(1 + n - p, 0) for one-hot labels: p = Σ labels · predictions is the score of the label, n = max((1 -
/// labels) · predictions) the largest of the others, or 0 if these are negative.
TAPEDECK_EXPORT Tensor categorical_hinge(const Tensor& labels, const Tensor& predictions);
/// max(|anchor - positive| - |anchor - negative| + margin, 0), with Euclidean distances |a - b + 1e-6|, where
/// 1e-6 keeps the gradient finite if a and b are equal.
TAPEDECK_EXPORT Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive,
                                           const Tensor& negative, double margin = 1);

}   // namespace tapedeck::nn
