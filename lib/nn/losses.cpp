// Losses. In: labels and predictions. Out: one value per example, made of ops.
#include "tapedeck/nn/losses.h"

#include <numbers>

#include "core/format.h"
#include "core/squeeze_advice.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck::nn {
namespace {

constexpr double kEpsilon = 1e-7;

void check_floating(std::string_view loss, std::string_view name, const Tensor& x) {
  if (!is_floating(x.dtype()))
    throw_error<DTypeError>("{}: {} is {}; use a floating-point dtype", loss, name, x.spec());
}

// f(numbers of the dtype that losses of x compute in), rounded to the dtype of x once: halves are f32.
template <class F> Tensor computed(const Tensor& x, const F& f) {
  const DType dtype = x.dtype(), wide = computed_in(dtype);
  Tensor y = f([&](const Tensor& t) { return t.dtype() == wide ? t : astype(t, wide); });
  return dtype == wide ? y : astype(y, dtype);
}

// f(labels, predictions) in one dtype, after a check that both fit.
template <class F>
Tensor of_fitting(std::string_view loss, const Tensor& labels, const Tensor& predictions, const F& f) {
  check_floating(loss, "predictions", predictions);
  if (is_complex(labels.dtype()))
    throw_error<DTypeError>("{}: labels is {}; use real numbers", loss, labels.spec());
  if (labels.ndim() == 0 || labels.shape() != predictions.shape())
    throw_error<ShapeError>(
        "{}: labels and predictions do not have one shape of rank 1 or more: labels is {}, "
        "predictions is {}; {}",
        loss, labels.spec(), predictions.spec(),
        squeeze_advice({"labels", labels.shape()}, {"predictions", predictions.shape()},
                       "reshape one of them"));
  return computed(predictions, [&](const auto& wide) { return f(wide(labels), wide(predictions)); });
}

void check_smoothing(std::string_view loss, std::string_view name, double smoothing) {
  if (!(smoothing >= 0 && smoothing <= 1))
    throw_error<ArgumentError>("{}: {} is {}; use a number from 0 to 1", loss, name, smoothing);
}
Tensor smooth(const Tensor& labels, double smoothing, std::int64_t classes) {
  return smoothing == 0 ? labels : labels * (1 - smoothing) + smoothing / static_cast<double>(classes);
}

Tensor clipped(std::string_view loss, const Tensor& probabilities, double epsilon) {
  if (!(epsilon > 0 && epsilon < 0.5))
    throw_error<ArgumentError>("{}: epsilon is {}; use a number between 0 and 0.5", loss, epsilon);
  return clip(probabilities, epsilon, 1 - epsilon);
}

Tensor normalized(const Tensor& x) { return x / sum(x, -1, {.keepdims = true}); }

std::int64_t class_count(const Tensor& x) { return x.shape()[x.ndim() - 1]; }

void check_focal(std::string_view loss, const FocalOptions& options) {
  if (!(options.gamma >= 0))
    throw_error<ArgumentError>("{}: gamma is {}; use 0 or more", loss, options.gamma);
  if (options.alpha && !(*options.alpha >= 0 && *options.alpha <= 1))
    throw_error<ArgumentError>("{}: alpha is {}; use a number from 0 to 1", loss, *options.alpha);
}

// The loss of each element.
Tensor binary(const Tensor& z, const Tensor& p) { return -(z * log(p) + (1 - z) * log1p(-p)); }

void check_classes(std::string_view loss, const Tensor& labels, const Tensor& x) {
  check_floating(loss, "predictions", x);
  if (labels.dtype() != DType::i32 && labels.dtype() != DType::i64)
    throw_error<DTypeError>("{}: labels is {}; use indices of classes, i32 or i64", loss, labels.spec());
  const auto axes = x.shape().dims();
  if (axes.empty())
    throw_error<ShapeError>("{}: predictions is {}; its last axis must be the classes", loss, x.spec());
  if (const Shape rows(axes.first(axes.size() - 1)); rows != labels.shape())
    throw_error<ShapeError>(
        "{}: labels do not have the shape of predictions without its last axis: labels is {}, "
        "predictions is {}; {}",
        loss, labels.spec(), x.spec(),
        squeeze_advice({"labels", labels.shape()}, {"predictions", rows}, "reshape one of them"));
}

void check_range(std::string_view loss, const Tensor& labels, std::int64_t classes) {
  if (labels.size() == 0) return;
  const auto low = min(labels).item<std::int64_t>(), high = max(labels).item<std::int64_t>();
  if (low < 0 || high >= classes)
    throw_error<ShapeError>("{}: labels are from {} to {}, out of range for {} classes", loss, low, high,
                            classes);
}

// loss(x[label]) for each row of x, with the weight of its label.
template <class Loss> Tensor at_labels(std::string_view name, const Tensor& labels, const Tensor& x,
                                       const ClassLabelOptions& options, const Loss& loss) {
  check_classes(name, labels, x);
  const Tensor& weights = options.class_weights;
  if (weights.defined() && weights.shape() != Shape{class_count(x)})
    throw_error<ShapeError>("{}: class_weights is {} for {} classes", name, weights.spec(), class_count(x));
  if (weights.defined()) check_floating(name, "class_weights", weights);
  const Tensor counts = options.ignore_index ? not_equal(labels, *options.ignore_index) : Tensor();
  const Tensor index = counts.defined() ? where(counts, labels, 0) : labels;
  check_range(name, index, class_count(x));
  return computed(x, [&](const auto& wide) {
    // Neither the value nor the slope of an ignored row may be used, since they can be infinite.
    const Tensor all = counts.defined() ? where(expand_dims(counts, -1), wide(x), 1.0) : wide(x);
    Tensor y = loss(squeeze(take_along_axis(all, expand_dims(index, -1)), -1), all);
    if (weights.defined()) y = y * wide(gather(weights, index));
    return counts.defined() ? where(counts, y, 0.0) : y;
  });
}

// A vector with the direction of each row of x: within [-1, 1], of length 1, or 0 if the row is 0. The tape
// treats the scale as a constant, since the direction does not depend on it.
Tensor direction(const Tensor& x) {
  if (x.shape()[x.ndim() - 1] == 0) return x;
  const Tensor largest = max(abs(stop_gradient(x)), -1, {.keepdims = true});
  const Tensor scaled = x / where(largest > 0, largest, 1.0);
  return scaled * rsqrt(maximum(sum(square(scaled), -1, {.keepdims = true}), 1.0));
}

}   // namespace

Tensor mean_absolute_error(const Tensor& labels, const Tensor& predictions) {
  return of_fitting("mean_absolute_error", labels, predictions,
                    [](const Tensor& z, const Tensor& p) { return mean(abs(z - p), -1); });
}

Tensor mean_absolute_percentage_error(const Tensor& labels, const Tensor& predictions) {
  return of_fitting("mean_absolute_percentage_error", labels, predictions,
                    [](const Tensor& z, const Tensor& p) {
                      return 100 * mean(abs(z - p) / maximum(abs(z), kEpsilon), -1);
                    });
}

Tensor mean_squared_logarithmic_error(const Tensor& labels, const Tensor& predictions) {
  return of_fitting("mean_squared_logarithmic_error", labels, predictions,
                    [](const Tensor& z, const Tensor& p) {
                      return mean(squared_difference(log1p(maximum(z, 0.0)), log1p(maximum(p, 0.0))), -1);
                    });
}

Tensor log_cosh(const Tensor& labels, const Tensor& predictions) {
  return of_fitting("log_cosh", labels, predictions, [](const Tensor& z, const Tensor& p) {
    const Tensor e = p - z;
    // Beyond 20, log cosh has the slope ±1 to the last bit of f64. cosh x = 1 + 2 sinh²(x / 2).
    const Tensor inner = clip(e, -20.0, 20.0);
    return mean(log1p(2 * square(sinh(inner * 0.5))) + abs(e - inner), -1);
  });
}

Tensor smooth_l1_loss(const Tensor& labels, const Tensor& predictions, double beta) {
  if (!(beta >= 0)) throw_error<ArgumentError>("smooth_l1_loss: beta is {}; use 0 or more", beta);
  return of_fitting("smooth_l1_loss", labels, predictions, [&](const Tensor& z, const Tensor& p) {
    return beta == 0 ? mean(abs(z - p), -1) : huber_loss(z, p, beta) / beta;
  });
}

Tensor smooth_labels(const Tensor& labels, double smoothing, std::int64_t classes) {
  check_floating("smooth_labels", "labels", labels);
  if (classes < 1) throw_error<ArgumentError>("smooth_labels: classes is {}; use 1 or more", classes);
  check_smoothing("smooth_labels", "smoothing", smoothing);
  return smooth(labels, smoothing, classes);
}

Tensor binary_cross_entropy(const Tensor& labels, const Tensor& probabilities,
                            const CrossEntropyOptions& options) {
  constexpr std::string_view name = "binary_cross_entropy";
  check_smoothing(name, "label_smoothing", options.label_smoothing);
  return of_fitting(name, labels, probabilities, [&](const Tensor& z, const Tensor& p) {
    return mean(binary(smooth(z, options.label_smoothing, 2), clipped(name, p, options.epsilon)), -1);
  });
}

Tensor categorical_cross_entropy(const Tensor& labels, const Tensor& probabilities,
                                 const CrossEntropyOptions& options) {
  constexpr std::string_view name = "categorical_cross_entropy";
  check_smoothing(name, "label_smoothing", options.label_smoothing);
  return of_fitting(name, labels, probabilities, [&](const Tensor& labels_, const Tensor& p) {
    const Tensor z = smooth(labels_, options.label_smoothing, class_count(p));
    return -sum(z * log(clipped(name, normalized(p), options.epsilon)), -1);
  });
}

Tensor sparse_categorical_cross_entropy(const Tensor& labels, const Tensor& probabilities,
                                        const ClassLabelOptions& options) {
  constexpr std::string_view name = "sparse_categorical_cross_entropy";
  return at_labels(name, labels, probabilities, options, [&](const Tensor& of_label, const Tensor& p) {
    return -log(clipped(name, of_label / sum(p, -1), kEpsilon));
  });
}

Tensor nll_loss(const Tensor& labels, const Tensor& log_probabilities, const ClassLabelOptions& options) {
  return at_labels("nll_loss", labels, log_probabilities, options,
                   [](const Tensor& of_label, const Tensor&) { return -of_label; });
}

Tensor binary_focal_cross_entropy(const Tensor& labels, const Tensor& predictions,
                                  const FocalOptions& options) {
  constexpr std::string_view name = "binary_focal_cross_entropy";
  check_focal(name, options);
  check_smoothing(name, "label_smoothing", options.label_smoothing);
  return of_fitting(name, labels, predictions, [&](const Tensor& labels_, const Tensor& x) {
    const Tensor z = smooth(labels_, options.label_smoothing, 2);
    const Tensor p = options.logits ? sigmoid(x) : clipped(name, x, options.epsilon);
    const Tensor not_p = options.logits ? sigmoid(-x) : 1 - p;
    Tensor y = options.logits ? sigmoid_cross_entropy(z, x) : binary(z, p);
    y = y * pow(maximum(z * not_p + (1 - z) * p, options.epsilon), options.gamma);
    if (options.alpha) y = y * (z * (2 * *options.alpha - 1) + (1 - *options.alpha));
    return mean(y, -1);
  });
}

Tensor categorical_focal_cross_entropy(const Tensor& labels, const Tensor& predictions,
                                       const FocalOptions& options) {
  constexpr std::string_view name = "categorical_focal_cross_entropy";
  check_focal(name, options);
  check_smoothing(name, "label_smoothing", options.label_smoothing);
  return of_fitting(name, labels, predictions, [&](const Tensor& labels_, const Tensor& x) {
    const Tensor z = smooth(labels_, options.label_smoothing, class_count(x));
    const Tensor log_p = options.logits ? log_softmax(x) : log(clipped(name, normalized(x), options.epsilon));
    const Tensor y = z * pow(maximum(-expm1(log_p), options.epsilon), options.gamma) * log_p;
    return sum(y, -1) * -options.alpha.value_or(1);
  });
}

Tensor kl_divergence(const Tensor& labels, const Tensor& predictions) {
  return of_fitting("kl_divergence", labels, predictions, [](const Tensor& z, const Tensor& p) {
    return sum(xlogy(z, z / maximum(p, kEpsilon)), -1);
  });
}

Tensor poisson(const Tensor& labels, const Tensor& predictions) {
  return of_fitting("poisson", labels, predictions,
                    [](const Tensor& z, const Tensor& p) { return mean(p - z * log(p + kEpsilon), -1); });
}

Tensor gaussian_nll_loss(const Tensor& labels, const Tensor& means, const Tensor& variances,
                         const GaussianNllOptions& options) {
  constexpr std::string_view name = "gaussian_nll_loss";
  if (!(options.epsilon > 0))
    throw_error<ArgumentError>("{}: epsilon is {}; use a positive number", name, options.epsilon);
  return of_fitting(name, labels, means, [&](const Tensor& z, const Tensor& m) {
    if (variances.dtype() != means.dtype())
      throw_error<DTypeError>("{}: means is {}, variances is {}; use astype", name, means.spec(),
                              variances.spec());
    if (variances.shape() != means.shape())
      throw_error<ShapeError>("{}: means and variances differ: means is {}, variances is {}; {}", name,
                              means.spec(), variances.spec(),
                              squeeze_advice({"means", means.shape()}, {"variances", variances.shape()},
                                             "give both one shape and one dtype"));
    const Tensor v =
        maximum(m.dtype() == means.dtype() ? variances : astype(variances, m.dtype()), options.epsilon);
    const Tensor y = 0.5 * mean(log(v) + squared_difference(z, m) / v, -1);
    return options.full ? y + 0.5 * std::log(2 * std::numbers::pi) : y;
  });
}

Tensor cosine_similarity(const Tensor& labels, const Tensor& predictions) {
  return of_fitting("cosine_similarity", labels, predictions,
                    [](const Tensor& z, const Tensor& p) { return -sum(direction(z) * direction(p), -1); });
}

Tensor hinge(const Tensor& labels, const Tensor& predictions) {
  return of_fitting("hinge", labels, predictions,
                    [](const Tensor& z, const Tensor& p) { return mean(maximum(1 - z * p, 0.0), -1); });
}

Tensor squared_hinge(const Tensor& labels, const Tensor& predictions) {
  return of_fitting("squared_hinge", labels, predictions, [](const Tensor& z, const Tensor& p) {
    return mean(square(maximum(1 - z * p, 0.0)), -1);
  });
}

Tensor categorical_hinge(const Tensor& labels, const Tensor& predictions) {
  return of_fitting("categorical_hinge", labels, predictions, [&](const Tensor& z, const Tensor& p) {
    if (class_count(p) == 0)
      throw_error<ShapeError>("categorical_hinge: predictions is {}; use at least one class",
                              predictions.spec());
    return maximum(1 + max((1 - z) * p, -1) - sum(z * p, -1), 0.0);
  });
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin) {
  constexpr std::string_view name = "triplet_margin_loss";
  check_floating(name, "anchor", anchor);
  for (const Tensor* x : {&positive, &negative})
    if (x->dtype() != anchor.dtype())
      throw_error<DTypeError>("{}: anchor is {}, positive is {}, negative is {}; use astype", name,
                              anchor.spec(), positive.spec(), negative.spec());
  if (anchor.ndim() == 0 || positive.spec() != anchor.spec() || negative.spec() != anchor.spec()) {
    const bool first = positive.shape() != anchor.shape();
    throw_error<ShapeError>(
        "{}: the three do not have one dtype and one shape of rank 1 or more: anchor is {}, "
        "positive is {}, negative is {}; {}",
        name, anchor.spec(), positive.spec(), negative.spec(),
        squeeze_advice(
            {"anchor", anchor.shape()},
            first ? NamedShape{"positive", positive.shape()} : NamedShape{"negative", negative.shape()},
            "make them alike"));
  }
  return computed(anchor, [&](const auto& wide) {
    const Tensor a = wide(anchor);
    const auto distance = [&](const Tensor& x) { return euclidean_norm(a - wide(x) + 1e-6, -1); };
    return maximum(distance(positive) - distance(negative) + margin, 0.0);
  });
}

}   // namespace tapedeck::nn
