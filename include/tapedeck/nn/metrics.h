// Metrics: measures of how well predictions match labels, accumulated over batches.
//
// A metric is a value: a copy counts on its own. Each has
//   add(labels, predictions, weights)   counts a batch; if it throws, nothing is counted
//   value()                             the value since the last reset; NaN if nothing was counted
//   name(), reset(), +=, state()        and the other members of Totals
// Weights, if there are any, have the shape of the first axes of labels and predictions, one number of 0 or
// more for each example. Examples of weight 0 are left out, whatever their labels and predictions are: give
// padding this weight. Nothing is recorded on tapes. Shapes that do not match throw ShapeError, unsuitable
// dtypes DTypeError, labels and weights out of range ArgumentError. Messages begin with the name of the
// metric.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tapedeck/owned.h"
#include "tapedeck/saved_state.h"
#include "tapedeck/tensor.h"

namespace tapedeck::nn {

/// The common base of metrics: the name, and totals in f64, which can be merged, saved and restored.
class TAPEDECK_EXPORT Totals {
 public:
  /// The name in messages and logs, such as "accuracy" or "top_5_accuracy".
  const std::string& name() const { return name_; }
  /// Resets all totals.
  void reset();
  /// Adds the totals of another metric of this name and kind, such as the metric of another replica. Throws
  /// ArgumentError for a different name or kind.
  Totals& operator+=(const Totals& other);

  /// The tensor "totals": with it a Checkpoint in the middle of an epoch resumes to the same bits.
  SavedState state() const;
  /// Throws ArgumentError, and changes nothing, for a state of another kind of metric.
  void restore(const SavedState& state);
  /// Performs the checks of restore; calling the result makes the change.
  Commit prepare_restore(const SavedState& state);
  /// Whether state() has a tensor of this name at some times and not at others.
  bool may_have(std::string_view tensor) const;

 protected:
  /// Adds totals to others.
  using Merge = void (*)(std::vector<double>& into, std::span<const double> from);
  /// A metric with a fixed number of totals, initially 0, or if count is 0, with a list that grows.
  Totals(std::string name, std::size_t count, Merge merge = add_up);
  static void add_up(std::vector<double>& into, std::span<const double> from);
  static void append(std::vector<double>& into, std::span<const double> from);

  std::vector<double> totals_;

 private:
  std::string name_;
  std::size_t count_;
  Merge merge_;
};

/// The weighted mean of numbers, such as losses.
class TAPEDECK_EXPORT Mean : public Totals {
 public:
  explicit Mean(std::string name = "mean");
  /// Adds all elements, each with the weight of its example, or one number.
  void add(const Tensor& values, const Tensor& weights = {});
  void add(double value, double weight = 1);
  double value() const;
};

/// The weighted mean of a function of labels and predictions, such as a loss: all elements of its result,
/// each with the weight of its example.
class TAPEDECK_EXPORT MeanOf : public Totals {
 public:
  /// The shape of the result is the shape of the examples, or begins with it.
  using Function = std::function<Tensor(const Tensor& labels, const Tensor& predictions)>;
  /// value() is the mean, or `transform` of it, such as its square root.
  MeanOf(std::string name, Function function, double (*transform)(double mean) = nullptr);
  void add(const Tensor& labels, const Tensor& predictions, const Tensor& weights = {});
  double value() const;

 private:
  Function function_;
  double (*transform_)(double);
};

/// The means of the squared and of the absolute differences of labels and predictions of the same shape, and
/// the square root of the first. "mean_squared_error", "root_mean_squared_error", "mean_absolute_error".
struct TAPEDECK_EXPORT MeanSquaredError : MeanOf {
  MeanSquaredError();
};
struct TAPEDECK_EXPORT RootMeanSquaredError : MeanOf {
  RootMeanSquaredError();
};
struct TAPEDECK_EXPORT MeanAbsoluteError : MeanOf {
  MeanAbsoluteError();
};

/// The fraction of examples whose class is predicted. Predictions are scores [..., classes], of which the
/// largest is the prediction, or classes, integers [...]; labels are classes, or one-hot [..., classes].
/// "accuracy". Throws ShapeError for scores of one class; use BinaryAccuracy for two classes with one score.
struct TAPEDECK_EXPORT Accuracy : MeanOf {
  Accuracy();
};
/// The fraction of elements whose prediction is above the threshold if the label is 1, and not above it if
/// the label is 0. "binary_accuracy", and with another threshold "binary_accuracy_at_0.7".
struct TAPEDECK_EXPORT BinaryAccuracy : MeanOf {
  explicit BinaryAccuracy(double threshold = 0.5);
};
/// The fraction of examples for which fewer than k scores are above the score of the label; predictions and
/// labels are as in Accuracy, but predictions must be scores. "top_5_accuracy". Throws ArgumentError unless k
/// is positive.
struct TAPEDECK_EXPORT TopKAccuracy : MeanOf {
  explicit TopKAccuracy(std::int64_t k = 5);
};
/// The exponential of the mean of sparse_softmax_cross_entropy(labels, logits), for labels that are classes.
/// "perplexity".
struct TAPEDECK_EXPORT Perplexity : MeanOf {
  Perplexity();
};

/// How scores of several classes are combined to one number.
enum class Average : std::uint8_t {
  macro,      // the mean over the classes, with equal weights
  micro,      // the score of the summed counts of all classes: the accuracy
  weighted,   // the mean over the classes, weighted by their numbers of examples
};
/// Options of Precision, Recall, F1 and FScore.
struct ClassScoreOptions {
  /// 0: labels are 0 and 1, predictions probabilities of the same shape, and the score is the score of class
  /// 1. Otherwise labels and predictions are as in Accuracy.
  std::int64_t classes = 0;
  Average average = Average::macro;   // for several classes
  double threshold = 0.5;             // for probabilities: 1 is predicted above it
};

/// The weighted harmonic mean of precision and recall, in which recall counts beta² times as much. For a
/// class with n examples that is predicted p times, t times correctly, it is (1 + beta²) t / (beta² n + p),
/// or 0 if that is 0 / 0.
class TAPEDECK_EXPORT FScore : public Totals {
 public:
  /// "f0.5_score", and with another threshold "f0.5_score_at_0.7". Throws ArgumentError for a negative number
  /// of classes and for a beta that is not 0 or more.
  explicit FScore(double beta, const ClassScoreOptions& options = {});
  void add(const Tensor& labels, const Tensor& predictions, const Tensor& weights = {});
  double value() const;
  /// The scores of the classes, f64 [classes], or [2] for labels 0 and 1; NaN if nothing was counted.
  Tensor per_class() const;

 protected:
  FScore(std::string name, double beta, const ClassScoreOptions& options);

 private:
  double score(double examples, double predictions, double right) const;   // score of one class

  double recall_part_;   // beta² / (1 + beta²)
  ClassScoreOptions options_;
};
/// t / p, t / n and 2t / (n + p): the FScores of beta 0, ∞ and 1. "precision", "recall", "f1_score".
struct TAPEDECK_EXPORT Precision : FScore {
  explicit Precision(const ClassScoreOptions& options = {});
};
struct TAPEDECK_EXPORT Recall : FScore {
  explicit Recall(const ClassScoreOptions& options = {});
};
struct TAPEDECK_EXPORT F1 : FScore {
  explicit F1(const ClassScoreOptions& options = {});
};

/// Options of a ConfusionMatrix.
struct ConfusionMatrixOptions {
  std::int64_t classes = 0;              // as in ClassScoreOptions
  double threshold = 0.5;                // as in ClassScoreOptions
  std::vector<std::string> names = {};   // names of the classes, for printing; by default their indices
};
/// How often each class is predicted for examples of each class. "confusion_matrix". value() is the accuracy.
class TAPEDECK_EXPORT ConfusionMatrix : public Totals {
 public:
  /// Throws ArgumentError for a negative number of classes, and for a different number of names.
  explicit ConfusionMatrix(const ConfusionMatrixOptions& options = {});
  void add(const Tensor& labels, const Tensor& predictions, const Tensor& weights = {});
  double value() const;
  /// The weights of the examples by label and prediction: f64 [classes, classes].
  Tensor counts() const;
  /// A table with a row for each label.
  TAPEDECK_EXPORT friend std::ostream& operator<<(std::ostream& out, const ConfusionMatrix& m);

 private:
  ConfusionMatrixOptions options_;
};

/// The curve of an AUC.
enum class Curve : std::uint8_t {
  roc,                // true positive rate over false positive rate
  precision_recall,   // precision over recall, as steps: the average precision
};
/// The area under a curve over all thresholds of the predictions, exact, with equal predictions as one
/// threshold. Labels are 0 and 1, predictions any numbers of the same shape. "auc" and "pr_auc". Keeps all
/// predictions, in 16 bytes each. NaN if there are no positive labels, for roc also if there are no negative
/// ones, and if a prediction is NaN.
class TAPEDECK_EXPORT AUC : public Totals {
 public:
  explicit AUC(Curve curve = Curve::roc);
  /// Adds all elements, each with the weight of its example. value() sorts a copy of the predictions. Throws
  /// ArgumentError for integers from 2^53 on, which f64 cannot distinguish.
  void add(const Tensor& labels, const Tensor& predictions, const Tensor& weights = {});
  double value() const;

 private:
  Curve curve_;
};

/// The coefficient of determination of labels and predictions of the same shape, 1 - Σ(labels - predictions)²
/// / Σ(labels - their mean)², over all elements. "r_squared". -∞ or NaN if all labels are equal.
class TAPEDECK_EXPORT RSquared : public Totals {
 public:
  RSquared();
  /// Adds all elements, each with the weight of its example.
  void add(const Tensor& labels, const Tensor& predictions, const Tensor& weights = {});
  double value() const;
};

/// A class that a Metric can hold: any class above but Mean, or a user-defined one.
template <class M>
concept MetricType = std::copy_constructible<M> &&
    requires(M& metric, const M& constant, const Tensor& x, const SavedState& s) {
  { constant.name() } -> std::convertible_to<std::string>;
  metric.add(x, x, x);
  { constant.value() } -> std::convertible_to<double>;
  metric.reset();
  metric += constant;
  { constant.state() } -> std::same_as<SavedState>;
  { metric.prepare_restore(s) } -> std::same_as<Commit>;
};

/// A metric of any kind, for lists of metrics. Copying copies the metric; a moved-from Metric must not be
/// used.
class TAPEDECK_EXPORT Metric {
 public:
  /// The metric under its own name or another one.
  template <class M>
  requires(!std::same_as<M, Metric> && MetricType<M>) Metric(M metric)
      : name_(metric.name()), held_(std::make_unique<Holder<M>>(std::move(metric))) {}
  template <class M>
  requires(!std::same_as<M, Metric> && MetricType<M>) Metric(std::string name, M metric)
      : name_(std::move(name)), held_(std::make_unique<Holder<M>>(std::move(metric))) {}
  Metric(const Metric& o) : name_(o.name_), held_(o.held_->copy()) {}
  Metric(Metric&&) = default;
  Metric& operator=(const Metric& o) { return *this = Metric(o); }
  Metric& operator=(Metric&&) = default;

  /// The name of the metric.
  const std::string& name() const { return name_; }
  /// The metric itself; null if it is not an M.
  template <class M> const M* get() const {
    const auto* holder = dynamic_cast<const Holder<M>*>(held_.get());
    return holder ? &holder->metric : nullptr;
  }

  /// Forwarded to the metric.
  void add(const Tensor& labels, const Tensor& predictions, const Tensor& weights = {}) {
    held_->add(labels, predictions, weights);
  }
  double value() const { return held_->value(); }
  void reset() { held_->reset(); }
  /// Throws ArgumentError also if the metrics have different classes.
  Metric& operator+=(const Metric& other) {
    if (!held_->merge(*other.held_)) throw_other(other);
    return *this;
  }
  SavedState state() const { return held_->state(); }
  Commit prepare_restore(const SavedState& state) { return held_->prepare_restore(state); }
  bool may_have(std::string_view tensor) const { return held_->may_have(tensor); }

 private:
  struct Held {
    virtual ~Held() = default;
    virtual std::unique_ptr<Held> copy() const = 0;
    virtual void add(const Tensor& labels, const Tensor& predictions, const Tensor& weights) = 0;
    virtual double value() const = 0;
    virtual void reset() = 0;
    virtual bool merge(const Held& other) = 0;   // false, without a change, for another class
    virtual SavedState state() const = 0;
    virtual Commit prepare_restore(const SavedState& state) = 0;
    virtual bool may_have(std::string_view tensor) const = 0;
  };
  template <class M> struct Holder final : Held {
    explicit Holder(M m) : metric(std::move(m)) {}
    std::unique_ptr<Held> copy() const override { return std::make_unique<Holder>(metric); }
    void add(const Tensor& labels, const Tensor& predictions, const Tensor& weights) override {
      metric.add(labels, predictions, weights);
    }
    double value() const override { return metric.value(); }
    void reset() override { metric.reset(); }
    bool merge(const Held& other) override {
      const auto* same = dynamic_cast<const Holder*>(&other);
      if (same) metric += same->metric;
      return same;
    }
    SavedState state() const override { return metric.state(); }
    Commit prepare_restore(const SavedState& state) override { return metric.prepare_restore(state); }
    bool may_have(std::string_view tensor) const override {
      if constexpr (requires { metric.may_have(tensor); }) return metric.may_have(tensor);
      return false;
    }

    M metric;
  };
  [[noreturn]] void throw_other(const Metric& other) const;

  std::string name_;
  tapedeck::detail::Owned<Held> held_;
};

}   // namespace tapedeck::nn
