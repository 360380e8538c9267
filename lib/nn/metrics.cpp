// Metrics. In: batches of labels and predictions. Out: totals, and numbers computed from them.
#include "tapedeck/nn/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>

#include "core/format.h"
#include "nn/examples.h"
#include "op/recorder.h"
#include "optim/saved_state.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck::nn {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The NaN of 0 / 0 is printed as -nan on some machines.
double quotient(double a, double b) { return a == 0 && b == 0 ? kNaN : a / b; }

std::string with_threshold(std::string_view name, double threshold) {
  return threshold == 0.5 ? std::string(name) : fmt::format("{}_at_{}", name, threshold);
}

// {Σ weight · value, Σ weight}
std::vector<double> weighted_sums(const std::string& metric, const Examples& examples, const Tensor& values) {
  if (is_complex(values.dtype()))
    throw_error<DTypeError>("{}: values is {}; use real numbers", metric, values.spec());
  const std::vector<double> v = values.to_vector();
  std::vector<double> sums(2);
  each_weight(metric, examples, values.shape(), [&](std::size_t i, double weight) {
    sums[0] += weight * v[i];
    sums[1] += weight;
  });
  return sums;
}

MeanOf::Function of_differences(std::string name, Tensor (*function)(const Tensor& difference)) {
  return [name = std::move(name), function](const Tensor& labels, const Tensor& predictions) {
    check_alike(name, labels, predictions);
    return function(astype(labels, DType::f64) - astype(predictions, DType::f64));
  };
}
Tensor squares(const Tensor& e) { return square(e); }
Tensor sizes(const Tensor& e) { return abs(e); }

MeanOf::Function are_right_at(double threshold) {
  return [threshold](const Tensor& labels, const Tensor& predictions) {
    const Classes classes =
        binary_classes(with_threshold("binary_accuracy", threshold), labels, predictions, threshold);
    return equal(classes.labels, classes.predictions);
  };
}

MeanOf::Function are_in_top(std::int64_t k) {
  return [k](const Tensor& labels, const Tensor& scores) {
    const Tensor label = labels_of(fmt::format("top_{}_accuracy", k), labels, scores);
    const Tensor of_label = take_along_axis(scores, expand_dims(label, -1));
    return count_nonzero(logical_not(less_equal(scores, of_label)), -1) < k;   // NaN is above all
  };
}

// A lambda, since std::function would export the type of a function.
constexpr auto losses_of_words = [](const Tensor& labels, const Tensor& logits) {
  const Tensor classes = labels_of("perplexity", labels, logits);
  if (!is_floating(logits.dtype()))
    throw_error<DTypeError>("perplexity: predictions is {}; use logits", logits.spec());
  return sparse_softmax_cross_entropy(classes, logits);
};

Classes classified(const std::string& metric, const Examples& e, std::int64_t classes, double threshold) {
  return classes ? classes_of(metric, e.labels, e.predictions, classes)
                 : binary_classes(metric, e.labels, e.predictions, threshold);
}

std::size_t checked_classes(std::string_view metric, std::int64_t classes) {
  if (classes < 0)
    throw_error<ArgumentError>("{}: classes is {}; use their number, or 0 for labels 0 and 1", metric,
                               classes);
  return classes ? static_cast<std::size_t>(classes) : 2;
}

// Calls f(label, prediction, weight) for each example.
template <class F>
void each_class(const std::string& metric, const Examples& e, const Classes& classes, const F& f) {
  const std::vector<std::int64_t> labels = classes.labels.to_vector<std::int64_t>();
  const std::vector<std::int64_t> predictions = classes.predictions.to_vector<std::int64_t>();
  each_weight(metric, e, classes.labels.shape(), [&](std::size_t i, double weight) {
    f(static_cast<std::size_t>(labels[i]), static_cast<std::size_t>(predictions[i]), weight);
  });
}

// Merges the moments of labels and predictions: the weight, the mean of the labels, the sum of squared
// deviations from it, and the sum of squared residuals. Chan, Golub and LeVeque 1983: avoids sums of squares
// that cancel.
void merge_moments(std::vector<double>& into, std::span<const double> from) {
  const double weight = into[0] + from[0];
  if (weight == 0) return;
  const double apart = from[1] - into[1], part = from[0] / weight;
  into[2] += from[2] + apart * apart * into[0] * part;
  into[3] += from[3];
  into[1] += apart * part;
  into[0] = weight;
}

}   // namespace

Totals::Totals(std::string name, std::size_t count, Merge merge)
    : totals_(count), name_(std::move(name)), count_(count), merge_(merge) {}

void Totals::reset() { totals_.assign(count_, 0); }

void Totals::add_up(std::vector<double>& into, std::span<const double> from) {
  for (std::size_t i = 0; i < into.size(); ++i)
    into[i] += from[i];
}
void Totals::append(std::vector<double>& into, std::span<const double> from) {
  const std::vector<double> copy(from.begin(), from.end());   // may be `into` itself
  into.insert(into.end(), copy.begin(), copy.end());
}

Totals& Totals::operator+=(const Totals& other) {
  if (name_ != other.name_ || count_ != other.count_ || merge_ != other.merge_)
    throw_error<ArgumentError>("{}: {} totals of {} cannot be added to {}; use metrics with the same options",
                               name_, other.count_, other.name_, count_);
  merge_(totals_, other.totals_);
  return *this;
}

SavedState Totals::state() const {
  SavedState s = {.kind = name_};
  if (!totals_.empty()) s.tensors = {{"totals", tensor(totals_)}};
  return s;
}

void Totals::restore(const SavedState& state) { prepare_restore(state)(); }
Commit Totals::prepare_restore(const SavedState& state) {
  StateReader reader(name_, state);
  Tensor totals;
  if (count_ || !state.tensors.empty()) totals = reader.tensor("totals");
  reader.end();
  if (totals.defined() && (totals.dtype() != DType::f64 || totals.ndim() != 1 ||
                           (count_ ? totals.size() != static_cast<std::int64_t>(count_) : totals.size() % 2)))
    throw_error<ArgumentError>("restore: \"totals\" of {} is {}", name_, totals.spec());
  return [this, next = totals.defined() ? totals.to_vector() : std::vector<double>()]() mutable {
    totals_ = std::move(next);
  };
}

bool Totals::may_have(std::string_view tensor) const { return count_ == 0 && tensor == "totals"; }

Mean::Mean(std::string name) : Totals(std::move(name), 2) {}

void Mean::add(const Tensor& values, const Tensor& weights) {
  const RecordingScope unrecorded(nullptr);
  const Examples e = weighted(name(), values, values, weights);
  add_up(totals_, weighted_sums(name(), e, e.labels));
}

void Mean::add(double value, double weight) {
  if (!(weight >= 0)) throw_error<ArgumentError>("{}: a weight is {}; use 0 or more", name(), weight);
  if (weight > 0) add_up(totals_, std::vector{weight * value, weight});
}

double Mean::value() const { return quotient(totals_[0], totals_[1]); }

MeanOf::MeanOf(std::string name, Function function, double (*transform)(double))
    : Totals(std::move(name), 2), function_(std::move(function)), transform_(transform) {
  if (!function_) throw_error<ArgumentError>("{}: the function is empty", this->name());
}

void MeanOf::add(const Tensor& labels, const Tensor& predictions, const Tensor& weights) {
  const RecordingScope unrecorded(nullptr);
  const Examples e = weighted(name(), labels, predictions, weights);
  add_up(totals_, weighted_sums(name(), e, function_(e.labels, e.predictions)));
}

double MeanOf::value() const {
  const double mean = quotient(totals_[0], totals_[1]);
  return transform_ ? transform_(mean) : mean;
}

MeanSquaredError::MeanSquaredError()
    : MeanOf("mean_squared_error", of_differences("mean_squared_error", squares)) {}
RootMeanSquaredError::RootMeanSquaredError()
    : MeanOf("root_mean_squared_error", of_differences("root_mean_squared_error", squares), std::sqrt) {}
MeanAbsoluteError::MeanAbsoluteError()
    : MeanOf("mean_absolute_error", of_differences("mean_absolute_error", sizes)) {}

Accuracy::Accuracy()
    : MeanOf("accuracy", [](const Tensor& labels, const Tensor& predictions) {
        const Classes classes = classes_of("accuracy", labels, predictions);
        return equal(classes.labels, classes.predictions);
      }) {}

BinaryAccuracy::BinaryAccuracy(double threshold)
    : MeanOf(with_threshold("binary_accuracy", threshold), are_right_at(threshold)) {}

TopKAccuracy::TopKAccuracy(std::int64_t k) : MeanOf(fmt::format("top_{}_accuracy", k), are_in_top(k)) {
  if (k < 1) throw_error<ArgumentError>("{}: k is {}; use 1 or more", name(), k);
}

Perplexity::Perplexity() : MeanOf("perplexity", losses_of_words, std::exp) {}

// The totals of each class: its examples, its predictions, and its correctly predicted examples.
FScore::FScore(std::string name, double beta, const ClassScoreOptions& options)
    : Totals(with_threshold(name, options.threshold), 3 * checked_classes(name, options.classes)),
      recall_part_(1 / (1 + 1 / (beta * beta))),   // also of 0, ∞ and numbers whose square overflows
      options_(options) {
  if (!(beta >= 0)) throw_error<ArgumentError>("{}: beta is {}; use 0 or more", name, beta);
}
FScore::FScore(double beta, const ClassScoreOptions& options)
    : FScore(fmt::format("f{}_score", beta), beta, options) {}

Precision::Precision(const ClassScoreOptions& options) : FScore("precision", 0, options) {}
Recall::Recall(const ClassScoreOptions& options)
    : FScore("recall", std::numeric_limits<double>::infinity(), options) {}
F1::F1(const ClassScoreOptions& options) : FScore("f1_score", 1, options) {}

void FScore::add(const Tensor& labels, const Tensor& predictions, const Tensor& weights) {
  const RecordingScope unrecorded(nullptr);
  const Examples e = weighted(name(), labels, predictions, weights);
  const Classes classes = classified(name(), e, options_.classes, options_.threshold);
  std::vector<double> counts(totals_.size());
  each_class(name(), e, classes, [&](std::size_t label, std::size_t prediction, double weight) {
    counts[3 * label] += weight;
    counts[3 * prediction + 1] += weight;
    if (label == prediction) counts[3 * label + 2] += weight;
  });
  add_up(totals_, counts);
}

double FScore::score(double examples, double predictions, double right) const {
  const double of = recall_part_ * examples + (1 - recall_part_) * predictions;
  return of > 0 ? right / of : 0;
}

Tensor FScore::per_class() const {
  const bool is_empty = std::isnan(value());
  std::vector<double> scores;
  for (std::size_t i = 0; i < totals_.size(); i += 3)
    scores.push_back(is_empty ? kNaN : score(totals_[i], totals_[i + 1], totals_[i + 2]));
  return tensor(scores);
}

double FScore::value() const {
  double all = 0, right = 0, macro = 0, by_examples = 0;
  for (std::size_t i = 0; i < totals_.size(); i += 3) {
    const double of_class = score(totals_[i], totals_[i + 1], totals_[i + 2]);
    all += totals_[i];
    right += totals_[i + 2];
    macro += of_class;
    by_examples += totals_[i] * of_class;
  }
  if (all == 0) return kNaN;
  if (options_.classes == 0) return score(totals_[3], totals_[4], totals_[5]);
  switch (options_.average) {
    case Average::micro:
      return right / all;
    case Average::weighted:
      return by_examples / all;
    default:
      return macro / static_cast<double>(options_.classes);
  }
}

ConfusionMatrix::ConfusionMatrix(const ConfusionMatrixOptions& options)
    : Totals(with_threshold("confusion_matrix", options.threshold),
             checked_classes("confusion_matrix", options.classes) *
                 checked_classes("confusion_matrix", options.classes)),
      options_(options) {
  const std::size_t classes = checked_classes(name(), options.classes), names = options.names.size();
  if (names && names != classes)
    throw_error<ArgumentError>("{}: {} names for {} classes", name(), names, classes);
  for (std::size_t i = names; i < classes; ++i)
    options_.names.push_back(std::to_string(i));
}

void ConfusionMatrix::add(const Tensor& labels, const Tensor& predictions, const Tensor& weights) {
  const RecordingScope unrecorded(nullptr);
  const Examples e = weighted(name(), labels, predictions, weights);
  const Classes classes = classified(name(), e, options_.classes, options_.threshold);
  std::vector<double> counts(totals_.size());
  each_class(name(), e, classes, [&](std::size_t label, std::size_t prediction, double weight) {
    counts[label * options_.names.size() + prediction] += weight;
  });
  add_up(totals_, counts);
}

double ConfusionMatrix::value() const {
  double right = 0, all = 0;
  for (std::size_t i = 0; i < totals_.size(); ++i) {
    all += totals_[i];
    if (i % (options_.names.size() + 1) == 0) right += totals_[i];
  }
  return quotient(right, all);
}

Tensor ConfusionMatrix::counts() const {
  const auto classes = static_cast<std::int64_t>(options_.names.size());
  return tensor(totals_, {classes, classes});
}

std::ostream& operator<<(std::ostream& out, const ConfusionMatrix& m) {
  const std::vector<std::string>& names = m.options_.names;
  std::vector<std::string> cells;
  std::size_t first = std::string_view("label").size(), width = 1;
  for (const double count : m.totals_)
    cells.push_back(fmt::format("{:.6g}", count));
  for (const std::string& cell : cells)
    width = std::max(width, cell.size());
  for (const std::string& name : names) {
    first = std::max(first, name.size());
    width = std::max(width, name.size());
  }
  out << fmt::format("{:<{}}", "label", first);
  for (const std::string& name : names)
    out << fmt::format("  {:>{}}", name, width);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i % names.size() == 0) out << fmt::format("\n{:<{}}", names[i / names.size()], first);
    out << fmt::format("  {:>{}}", cells[i], width);
  }
  return out;
}

constexpr double kMostExact = 0x1p53;   // up to here f64 represents all integers

// A list of pairs: a prediction, and the weight of its example, negative for label 0.
AUC::AUC(Curve curve) : Totals(curve == Curve::roc ? "auc" : "pr_auc", 0, append), curve_(curve) {}

void AUC::add(const Tensor& labels, const Tensor& predictions, const Tensor& weights) {
  const RecordingScope unrecorded(nullptr);
  const Examples e = weighted(name(), labels, predictions, weights);
  check_alike(name(), e.labels, e.predictions);
  check_bits(name(), e.labels);
  const std::vector<double> z = e.labels.to_vector(), p = e.predictions.to_vector();
  const bool is_whole = !is_floating(e.predictions.dtype());
  std::vector<double> pairs;
  pairs.reserve(2 * z.size());
  each_weight(name(), e, e.labels.shape(), [&](std::size_t i, double weight) {
    if (is_whole && std::abs(p[i]) >= kMostExact)
      throw_error<ArgumentError>(
          "{}: a prediction is {:.0f}, and predictions are compared as f64, which has no odd numbers beyond "
          "2^53; subtract the same number from all of them",
          name(), p[i]);
    pairs.push_back(p[i]);
    pairs.push_back(z[i] == 1 ? weight : -weight);
  });
  append(totals_, pairs);
}

double AUC::value() const {
  struct Pair {
    double prediction, weight;
    auto operator<=>(const Pair&) const = default;
  };
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < totals_.size(); i += 2) {
    if (std::isnan(totals_[i])) return kNaN;
    pairs.push_back({totals_[i], totals_[i + 1]});
  }
  std::sort(pairs.begin(), pairs.end(), std::greater<Pair>());
  double positive = 0, negative = 0, area = 0;   // above the threshold
  for (auto at = pairs.begin(); at != pairs.end();) {
    double more_positive = 0, more_negative = 0;
    const double threshold = at->prediction;
    for (; at != pairs.end() && at->prediction == threshold; ++at)
      (at->weight > 0 ? more_positive : more_negative) += std::abs(at->weight);
    if (curve_ == Curve::roc) area += more_negative * (positive + more_positive / 2);
    positive += more_positive;
    negative += more_negative;
    if (curve_ == Curve::precision_recall) area += more_positive * positive / (positive + negative);
  }
  return quotient(area, curve_ == Curve::roc ? positive * negative : positive);
}

RSquared::RSquared() : Totals("r_squared", 4, merge_moments) {}

void RSquared::add(const Tensor& labels, const Tensor& predictions, const Tensor& weights) {
  const RecordingScope unrecorded(nullptr);
  const Examples e = weighted(name(), labels, predictions, weights);
  check_alike(name(), e.labels, e.predictions);
  const std::vector<double> z = e.labels.to_vector(), p = e.predictions.to_vector();
  const double mean = [&] {
    const std::vector<double> sums = weighted_sums(name(), e, e.labels);
    return sums[1] == 0 ? 0 : sums[0] / sums[1];
  }();
  std::vector<double> moments = {0, mean, 0, 0};
  each_weight(name(), e, e.labels.shape(), [&](std::size_t i, double weight) {
    moments[0] += weight;
    moments[2] += weight * (z[i] - mean) * (z[i] - mean);
    moments[3] += weight * (z[i] - p[i]) * (z[i] - p[i]);
  });
  merge_moments(totals_, moments);
}

double RSquared::value() const { return 1 - quotient(totals_[3], totals_[2]); }

void Metric::throw_other(const Metric& other) const {
  throw_error<ArgumentError>("{}: {} is a metric of another class", name_, other.name_);
}

}   // namespace tapedeck::nn
