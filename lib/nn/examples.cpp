// The examples that metrics count.
#include "nn/examples.h"

#include <algorithm>

#include "core/format.h"
#include "core/squeeze_advice.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck::nn {
namespace {

bool begins_with(const Shape& shape, const Shape& first) {
  return first.ndim() <= shape.ndim() && std::equal(first.begin(), first.end(), shape.begin());
}

Shape without_last(const Shape& shape) {
  return Shape(shape.dims().first(static_cast<std::size_t>(shape.ndim() - 1)));
}

bool has_integers(const Tensor& x) { return !is_trainable(x.dtype()) && x.dtype() != DType::boolean; }

void check_real(std::string_view metric, const Tensor& labels, const Tensor& predictions) {
  if (is_complex(labels.dtype()) || is_complex(predictions.dtype()))
    throw_error<DTypeError>("{}: labels is {}, predictions is {}; use real numbers", metric, labels.spec(),
                            predictions.spec());
}

// Classes, i64 [...], from x, which contains classes, or has a further axis, along which the largest element
// selects the class.
Tensor indices(std::string_view metric, std::string_view name, const Tensor& x, bool is_wide,
               std::int64_t classes) {
  if (is_wide) return argmax(x.dtype() == DType::boolean ? astype(x, DType::u8) : x);
  if (!has_integers(x))
    throw_error<DTypeError>("{}: {} is {}; use integers, or a further axis for the classes", metric, name,
                            x.spec());
  const Tensor y = astype(x, DType::i64);
  if (classes == 0 || y.size() == 0) return y;
  const auto low = min(y).item<std::int64_t>(), high = max(y).item<std::int64_t>();
  if (low < 0 || high >= classes)
    throw_error<ArgumentError>("{}: {} are from {} to {}, out of range for {} classes", metric, name, low,
                               high, classes);
  return y;
}

[[noreturn]] void throw_misfit(std::string_view metric, const Tensor& labels, const Tensor& predictions,
                               std::int64_t classes) {
  throw_error<ShapeError>(
      "{}: labels is {}, predictions is {}; use [...] for classes, [...,{}] for scores and "
      "one-hot labels",
      metric, labels.spec(), predictions.spec(), classes ? std::to_string(classes) : "classes");
}

[[noreturn]] void throw_bad_weights(std::string_view metric, const Tensor& labels, const Tensor& predictions,
                                    const Tensor& weights) {
  const std::string values = labels.id() == predictions.id() ? fmt::format("values is {}", labels.spec())
                                                             : fmt::format("labels is {}, predictions is {}",
                                                                           labels.spec(), predictions.spec());
  throw_error<ShapeError>("{}: weights do not have the shape of the first axes: weights is {}, {}", metric,
                          weights.spec(), values);
}

}   // namespace

Examples weighted(std::string_view metric, const Tensor& labels, const Tensor& predictions,
                  const Tensor& weights) {
  if (!weights.defined()) return {labels, predictions, {}};
  const Shape& shape = weights.shape();
  if (shape.ndim() == 0 || !begins_with(labels.shape(), shape) || !begins_with(predictions.shape(), shape))
    throw_bad_weights(metric, labels, predictions, weights);
  if (is_complex(weights.dtype()))
    throw_error<DTypeError>("{}: weights is {}; use real numbers", metric, weights.spec());
  Examples all = {labels, predictions, shape, weights.to_vector(), true};
  const auto bad = std::find_if(all.weights.begin(), all.weights.end(), [](double w) { return !(w >= 0); });
  if (bad != all.weights.end()) throw_error<ArgumentError>("{}: a weight is {}; use 0 or more", metric, *bad);
  if (std::erase(all.weights, 0.0) == 0) return all;
  const Tensor counts = not_equal(weights, 0);
  all.labels = boolean_mask(labels, counts);
  all.predictions = boolean_mask(predictions, counts);
  all.shape = {static_cast<std::int64_t>(all.weights.size())};
  return all;
}

void each_weight(std::string_view metric, const Examples& examples, const Shape& values,
                 const std::function<void(std::size_t i, double weight)>& f) {
  if (!begins_with(values, examples.shape))
    throw_error<ShapeError>("{}: there are {} values for examples of {}", metric, values, examples.shape);
  const auto size = static_cast<std::size_t>(values.size());
  const std::size_t each = examples.are_weighted && size ? size / examples.weights.size() : 1;
  for (std::size_t i = 0; i < size; ++i)
    f(i, examples.are_weighted ? examples.weights[i / each] : 1);
}

Classes classes_of(std::string_view metric, const Tensor& labels, const Tensor& predictions,
                   std::int64_t count) {
  check_real(metric, labels, predictions);
  const int more = predictions.ndim() - labels.ndim();
  const bool are_wide = more == 0 && !(has_integers(labels) && has_integers(predictions));
  const bool has_scores = more > 0 || are_wide, is_one_hot = more < 0 || are_wide;
  const Shape& widest = has_scores ? predictions.shape() : labels.shape();
  const bool has_classes = has_scores || is_one_hot;
  if (has_classes && widest.ndim() == 0) throw_misfit(metric, labels, predictions, count);
  const Shape examples = has_classes ? without_last(widest) : widest;
  const std::int64_t classes = has_classes ? widest[widest.ndim() - 1] : count;
  if (has_classes && (classes == 1 || (are_wide && widest.ndim() == 1)))
    throw_error<ShapeError>(
        "{}: labels is {}, predictions is {}; scores and one-hot labels are [...,classes] of two classes or "
        "more. For one number of each example use a binary metric, such as BinaryAccuracy",
        metric, labels.spec(), predictions.spec());
  if (labels.shape() != (is_one_hot ? widest : examples) ||
      predictions.shape() != (has_scores ? widest : examples) || (count && classes != count) ||
      (has_classes && classes == 0))
    throw_misfit(metric, labels, predictions, count);
  return {indices(metric, "labels", labels, is_one_hot, classes),
          indices(metric, "predictions", predictions, has_scores, classes)};
}

Tensor labels_of(std::string_view metric, const Tensor& labels, const Tensor& scores) {
  check_real(metric, labels, scores);
  const bool is_one_hot = labels.shape() == scores.shape();
  if (scores.ndim() == 0 || scores.shape()[scores.ndim() - 1] == 0 ||
      (!is_one_hot && labels.shape() != without_last(scores.shape())))
    throw_misfit(metric, labels, scores, 0);
  return indices(metric, "labels", labels, is_one_hot, scores.shape()[scores.ndim() - 1]);
}

Classes binary_classes(std::string_view metric, const Tensor& labels, const Tensor& predictions,
                       double threshold) {
  check_alike(metric, labels, predictions);
  check_bits(metric, labels);
  return {astype(labels, DType::i64), astype(greater(predictions, threshold), DType::i64)};
}

void check_alike(std::string_view metric, const Tensor& labels, const Tensor& predictions) {
  check_real(metric, labels, predictions);
  if (labels.shape() != predictions.shape())
    throw_error<ShapeError>(
        "{}: labels and predictions do not have one shape: labels is {}, predictions is {}; {}", metric,
        labels.spec(), predictions.spec(),
        squeeze_advice({"labels", labels.shape()}, {"predictions", predictions.shape()},
                       "reshape one of them"));
}

void check_bits(std::string_view metric, const Tensor& labels) {
  for (const double z : labels.to_vector())
    if (z != 0 && z != 1) throw_error<ArgumentError>("{}: a label is {}; use 0 and 1", metric, z);
}

}   // namespace tapedeck::nn
