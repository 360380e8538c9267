// The metrics of nn/metrics.h, compared with scikit-learn 1.2.1: in one batch and in several, weighted,
// merged, saved.
#include "tapedeck/nn/metrics.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <sstream>

#include "message_of.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/debug.h"
#include "tapedeck/tapedeck.h"
#include "temporary_folder.h"
#include "values.h"

namespace metrics_test {

using namespace tapedeck;
using namespace tapedeck::test;
using nn::Average, nn::Metric;

namespace {

// The names that the oracles use. y, p, w: classes, predicted ones, weights; b, s, v: binary labels, their
// probabilities, weights; t, q, u: numbers, predictions, weights; l, c, n: classes, probabilities of four,
// weights.
const Tensor y = tensor({0, 1, 2, 2, 1, 0, 2, 1}), p = tensor({0, 2, 2, 2, 1, 1, 0, 1});
const Tensor w = f64({1, 2, 0.5, 1, 3, 1, 2, 0.25});
const Tensor b = tensor({0, 1, 1, 0, 1, 0, 1, 0, 1, 1});
const Tensor s = f64({0.1, 0.8, 0.4, 0.4, 0.9, 0.3, 0.35, 0.8, 0.55, 0.2});
const Tensor v = f64({1, 2, 0.5, 1, 3, 1, 2, 0.25, 1, 1.5});
const Tensor t = f64({3, -0.5, 2, 7, 4.25, -1}), q = f64({2.5, 0, 2, 8, 4, -1.5}),
             u = f64({1, 2, 0.5, 1, 3, 0.25});
const Tensor l = tensor({0, 1, 2, 2, 0}), n = tensor({1, 2, 3, 4, 5});
const Tensor c = matrix({{0.5, 0.2, 0.2, 0.1},
                         {0.3, 0.4, 0.2, 0.1},
                         {0.2, 0.4, 0.3, 0.1},
                         {0.7, 0.1, 0.15, 0.05},
                         {0.1, 0.2, 0.3, 0.4}});

struct MetricCase {
  Metric metric;
  Tensor labels, predictions, weights;
  double expected, expected_weighted;
  std::string_view oracle;   // of sklearn.metrics, and by sample_weight= the second
};

const MetricCase cases[] = {
    {nn::Accuracy(), y, p, w, 0.625, 0.534883720930233, "accuracy_score(y, p)"},
    {nn::BinaryAccuracy(), b, s, v, 0.6, 0.679245283018868, "accuracy_score(b, s > 0.5)"},
    {nn::BinaryAccuracy(0.3), b, s, v, 0.7, 0.792452830188679, "accuracy_score(b, s > 0.3)"},
    {nn::TopKAccuracy(1), l, c, n, 0.4, 0.2, "top_k_accuracy_score(l, c, k=1, labels=range(4))"},
    {nn::TopKAccuracy(2), l, c, n, 0.8, 0.666666666666667,
     "top_k_accuracy_score(l, c, k=2, labels=range(4))"},
    {nn::Precision({.classes = 3}), y, p, w, 0.611111111111111, 0.508870214752568,
     "precision_score(y, p, average='macro')"},
    {nn::Recall({.classes = 3}), y, p, w, 0.611111111111111, 0.515873015873016,
     "recall_score(y, p, average='macro')"},
    {nn::F1({.classes = 3}), y, p, w, 0.611111111111111, 0.504260651629073,
     "f1_score(y, p, average='macro')"},
    {nn::F1({.classes = 3, .average = Average::micro}), y, p, w, 0.625, 0.534883720930233,
     "f1_score(y, p, average='micro')"},
    {nn::Precision({.classes = 3, .average = Average::weighted}), y, p, w, 0.625, 0.575011399908801,
     "precision_score(y, p, average='weighted')"},
    {nn::F1({.classes = 3, .average = Average::weighted}), y, p, w, 0.625, 0.548102815177479,
     "f1_score(y, p, average='weighted')"},
    {nn::FScore(2, {.classes = 3}), y, p, w, 0.611111111111111, 0.508893746517509,
     "fbeta_score(y, p, beta=2, average='macro')"},
    {nn::Precision(), b, s, v, 0.75, 0.96, "precision_score(b, s > 0.5)"},
    {nn::Recall(), b, s, v, 0.5, 0.6, "recall_score(b, s > 0.5)"},
    {nn::F1(), b, s, v, 0.6, 0.738461538461538, "f1_score(b, s > 0.5)"},
    {nn::ConfusionMatrix({.classes = 3}), y, p, w, 0.625, 0.534883720930233, "accuracy_score(y, p)"},
    {nn::AUC(), b, s, v, 0.666666666666667, 0.792307692307692, "roc_auc_score(b, s)"},
    {nn::AUC(nn::Curve::precision_recall), b, s, v, 0.744047619047619, 0.925219628297969,
     "average_precision_score(b, s)"},
    {nn::MeanSquaredError(), t, q, u, 0.302083333333333, 0.258064516129032, "mean_squared_error(t, q)"},
    {nn::RootMeanSquaredError(), t, q, u, 0.549621081594705, 0.508000508000762,
     "mean_squared_error(t, q, squared=False)"},
    {nn::MeanAbsoluteError(), t, q, u, 0.458333333333333, 0.435483870967742, "mean_absolute_error(t, q)"},
    {nn::RSquared(), t, q, u, 0.959768786127168, 0.959689544475598, "r2_score(t, q)"},
    {nn::Perplexity(), l, log(c), n, 4.06585136488978, 5.37954338262277,
     "exp(log_loss(l, c, labels=range(4)))"},
};

auto near(double x) { return Approx(x).epsilon(1e-13); }
Tensor rows(const Tensor& x, std::int64_t first, std::int64_t last) {
  return gather(x, arange(static_cast<double>(first), static_cast<double>(last), 1, DType::i64));
}
double value_of(Metric metric, const Tensor& labels, const Tensor& predictions, const Tensor& weights = {}) {
  metric.add(labels, predictions, weights);
  return metric.value();
}
/// The metric after rows [first, last) of a case, weighted.
void add_rows(Metric& metric, const MetricCase& of, std::int64_t first, std::int64_t last) {
  metric.add(rows(of.labels, first, last), rows(of.predictions, first, last), rows(of.weights, first, last));
}
std::int64_t size(const MetricCase& of) { return of.weights.size(); }

/// NaN, or a label that is out of range, in all elements.
Tensor nonsense(const Tensor& x) { return is_floating(x.dtype()) ? full_like(x, NAN) : full_like(x, -100); }

}   // namespace

TEST_CASE("metrics have the values of scikit-learn", "[metrics]") {
  for (const MetricCase& of : cases) {
    INFO(of.metric.name() << ": " << of.oracle);
    CHECK(value_of(of.metric, of.labels, of.predictions) == near(of.expected));
    CHECK(value_of(of.metric, of.labels, of.predictions, of.weights) == near(of.expected_weighted));
    CHECK(value_of(of.metric, of.labels, of.predictions, astype(of.weights, DType::f32)) ==
          near(of.expected_weighted));
  }
}

TEST_CASE("metrics of several batches are the metrics of all their rows", "[metrics]") {
  for (const MetricCase& of : cases) {
    INFO(of.metric.name());
    Metric metric = of.metric;
    CHECK(std::isnan(metric.value()));
    for (std::int64_t i = 0; i < size(of); ++i)
      add_rows(metric, of, i, i + 1);
    CHECK(metric.value() == near(of.expected_weighted));
    metric.add(rows(of.labels, 0, 0), rows(of.predictions, 0, 0));
    metric.add(nonsense(of.labels), nonsense(of.predictions), zeros({size(of)}));
    CHECK(metric.value() == near(of.expected_weighted));
    metric.reset();
    CHECK(std::isnan(metric.value()));
    metric.add(of.labels, of.predictions);
    CHECK(metric.value() == near(of.expected));
  }
}

TEST_CASE("metrics of replicas add up", "[metrics]") {
  for (const MetricCase& of : cases) {
    INFO(of.metric.name());
    Metric first = of.metric, second = of.metric, empty = of.metric;
    add_rows(first, of, 0, 3);
    add_rows(second, of, 3, size(of));
    first += second;
    CHECK(first.value() == near(of.expected_weighted));
    first += empty;
    CHECK(first.value() == near(of.expected_weighted));
    empty += first;
    CHECK(empty.value() == near(of.expected_weighted));
    first += first;
    CHECK(first.value() == near(of.expected_weighted));
  }
}

TEST_CASE("metrics resume from a checkpoint to the same bits", "[metrics]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/metric.safetensors";
  for (const MetricCase& of : cases) {
    INFO(of.metric.name());
    Metric straight = of.metric, resumed = of.metric, other = of.metric;
    add_rows(straight, of, 0, 2);
    add_rows(other, of, 0, size(of));   // which the restore replaces
    Checkpoint saved, restored, fresh;
    saved.add("metric", straight);
    saved.save(path);
    restored.add("metric", other);
    restored.restore(path);
    fresh.add("metric", resumed);
    fresh.restore(path);
    for (Metric* m : {&straight, &resumed, &other})
      add_rows(*m, of, 2, size(of));
    CHECK(resumed.value() == straight.value());
    CHECK(other.value() == straight.value());

    Metric empty = of.metric;
    Checkpoint of_empty;
    of_empty.add("metric", empty);
    of_empty.save(path);
    restored.restore(path);
    CHECK(std::isnan(other.value()));
  }
}

TEST_CASE("a failing metric counts nothing", "[metrics]") {
  for (const MetricCase& of : cases) {
    INFO(of.metric.name());
    Metric metric = of.metric;
    metric.add(of.labels, of.predictions, of.weights);
    CHECK_THROWS_AS(metric.add(of.labels, rows(of.predictions, 0, 2)), ShapeError);
    CHECK_THROWS_AS(metric.add(of.labels, of.predictions, f64({1})), ShapeError);
    CHECK_THROWS_AS(metric.add(of.labels, of.predictions, full_like(of.weights, -1)), ArgumentError);
    CHECK_THROWS_AS(metric.add(of.labels, astype(of.predictions, DType::c64)), DTypeError);
    CHECK(metric.value() == near(of.expected_weighted));
  }
}

TEST_CASE("classes are numbers, scores or one-hot", "[metrics]") {
  const Tensor scores = one_hot(p, 3) * 5.0, one_hot_labels = one_hot(y, 3, DType::boolean);
  for (const Metric& metric : {Metric(nn::Accuracy()), Metric(nn::F1({.classes = 3})),
                               Metric(nn::ConfusionMatrix({.classes = 3}))}) {
    INFO(metric.name());
    const double expected = value_of(metric, y, p);
    CHECK(value_of(metric, y, scores) == expected);
    CHECK(value_of(metric, astype(y, DType::u8), scores) == expected);
    CHECK(value_of(metric, one_hot_labels, scores) == expected);
    CHECK(value_of(metric, astype(one_hot_labels, DType::f32), scores) == expected);
    CHECK(value_of(metric, one_hot_labels, astype(p, DType::i64)) == expected);
    CHECK(value_of(metric, reshape(y, {2, 4}), reshape(scores, {2, 4, 3}), reshape(ones_like(y), {2, 4})) ==
          expected);
  }
  CHECK(value_of(nn::TopKAccuracy(2), one_hot(l, 4), c) == 0.8);
  CHECK(value_of(nn::TopKAccuracy(1), tensor({0, 0}), matrix({{1, 1}, {NAN, 0}})) ==
        0.5);   // equal scores; NaN
  CHECK(value_of(nn::TopKAccuracy(9), l, c) == 1);
}

TEST_CASE("weights are of examples, and hold for all of their elements", "[metrics]") {
  const Tensor labels = matrix({{0, 0}, {0, 0}}), predictions = matrix({{1, 2}, {3, 5}}),
               weights = f64({3, 1});
  CHECK(value_of(nn::MeanAbsoluteError(), labels, predictions, weights) == (3 * 3 + 8) / 8.);
  CHECK(value_of(nn::MeanAbsoluteError(), labels, predictions, f64({0, 1})) == 4);
  CHECK(value_of(nn::MeanAbsoluteError(), labels, predictions, matrix({{0, 1}, {0, 0}})) == 2);
  CHECK(value_of(nn::MeanAbsoluteError(), labels, predictions, tensor({0, 1}, DType::boolean)) == 4);
  // Keras and scikit-learn: one bit of class 1 in eight, weighted 4 / 4.5.
  nn::ConfusionMatrix matrix({.classes = 2});
  matrix.add(tensor({0, 1}), tensor({1, 1}), f64({0.5, 4}));
  CHECK(matrix.counts().to_vector() == Values{0, 0.5, 0, 4});
}

TEST_CASE("scores of classes one by one", "[metrics]") {
  // sklearn.metrics.precision_score(y, p, average=None), and of (b, s > 0.5, sample_weight=v).
  nn::Precision precision({.classes = 4});
  CHECK(std::isnan(precision.per_class().at({0})));
  precision.add(y, p);
  CHECK_THAT(precision.per_class().to_vector(), Catch::Matchers::Approx(Values{0.5, 2. / 3, 2. / 3, 0}));
  CHECK(precision.value() == near((0.5 + 4. / 3) / 4));
  nn::F1 f1;
  f1.add(b, s, v);
  CHECK_THAT(f1.per_class().to_vector(),
             Catch::Matchers::Approx(Values{0.585365853658537, 0.738461538461538}));
  nn::Precision at({.threshold = 0.3});
  at.add(b, s);
  CHECK(at.name() == "precision_at_0.3");
  CHECK(at.value() == near(5. / 7));
}

TEST_CASE("a confusion matrix counts and prints", "[metrics]") {
  nn::ConfusionMatrix matrix({.classes = 3, .names = {"cat", "dog", "a bird"}});
  matrix.add(y, p, w);
  CHECK(matrix.counts().shape() == Shape{3, 3});
  CHECK(matrix.counts().to_vector() ==
        Values{1, 1, 0, 0, 3.25, 2, 2, 0, 1.5});   // sklearn's confusion_matrix
  std::ostringstream out;
  out << matrix;
  CHECK(out.str() ==
        "label      cat     dog  a bird\n"
        "cat          1       1       0\n"
        "dog          0    3.25       2\n"
        "a bird       2       0     1.5");
  nn::ConfusionMatrix binary;
  binary.add(b, s, v);
  CHECK(binary.counts().to_vector() == Values{3, 0.25, 4, 6});
}

TEST_CASE("areas under curves at their ends", "[metrics]") {
  using nn::AUC, nn::Curve;
  CHECK(value_of(AUC(), tensor({0, 1}), f64({0.5, 0.5})) == 0.5);
  CHECK(value_of(AUC(), tensor({0, 1}), f64({-INFINITY, INFINITY})) == 1);
  CHECK(value_of(AUC(), tensor({0, 1}), f64({2, 1})) == 0);
  CHECK(std::isnan(value_of(AUC(), tensor({1, 1}), f64({0, 1}))));
  CHECK(std::isnan(value_of(AUC(), tensor({0, 0}), f64({0, 1}))));
  CHECK(std::isnan(value_of(AUC(), tensor({0, 1}), f64({0, NAN}))));
  CHECK(value_of(AUC(Curve::precision_recall), tensor({1, 1}), f64({0, 1})) == 1);
  CHECK(std::isnan(value_of(AUC(Curve::precision_recall), tensor({0, 0}), f64({0, 1}))));
  // The order of equal predictions does not matter.
  const Tensor thirds = full({4}, 1. / 3, DType::f64) * f64({1, 3, 5, 7});
  nn::AUC one, other;
  one.add(tensor({1, 0, 1, 0}), ones({4}), thirds);
  other.add(tensor({0, 1, 0, 1}), ones({4}), reverse(thirds));
  CHECK(one.value() == other.value());
}

TEST_CASE("the coefficient of determination does not cancel", "[metrics]") {
  nn::RSquared r;
  for (int i = 0; i < 10; ++i)
    r.add(f64({1e9 + i}), f64({1e9 + i + (i % 2 ? 0.5 : -0.5)}));
  CHECK(r.value() == near(1 - 2.5 / 82.5));   // Σ (i - 4.5)² = 82.5
}

TEST_CASE("means of numbers, and of a loss", "[metrics]") {
  nn::Mean mean("loss");
  CHECK(std::isnan(mean.value()));
  mean.add(2.0, 3);
  mean.add(tensor({1.0, 5.0}));
  CHECK(mean.value() == 12. / 5);
  mean.add(tensor({1.0, NAN}), tensor({5.0, 0.0}));
  CHECK(mean.value() == 17. / 10);
  CHECK(mean.name() == "loss");

  Metric loss =
      nn::MeanOf("squares", [](const Tensor& z, const Tensor& x) { return mean_squared_error(z, x); });
  loss.add(matrix({{0, 0}, {0, 0}}), matrix({{1, 3}, {2, 4}}), f64({3, 1}));
  CHECK(loss.value() == (3 * 5 + 10) / 4.);
}

TEST_CASE("metrics leave tapes alone", "[metrics]") {
  GradientTape tape({.persistent = true});
  for (const MetricCase& of : cases) {
    if (!is_floating(of.predictions.dtype())) continue;
    tape.watch(of.predictions);
    const std::string before = summary(tape);
    Metric metric = of.metric;
    metric.add(of.labels, of.predictions, of.weights);
    CHECK(summary(tape) == before);
  }
}

TEST_CASE("a Metric holds any metric, and copies it", "[metrics]") {
  std::vector<Metric> all = {nn::Accuracy(), Metric("errors", nn::ConfusionMatrix({.classes = 3}))};
  CHECK(all[0].name() == "accuracy");
  CHECK(all[1].name() == "errors");
  for (Metric& metric : all)
    metric.add(y, p);
  const std::vector<Metric> copies = all;
  all[1].reset();
  CHECK(copies[1].value() == 0.625);
  CHECK(copies[1].get<nn::ConfusionMatrix>()->counts().at({1, 2}) == 1);
  CHECK(copies[1].get<nn::Accuracy>() == nullptr);
  all[0] = copies[1];
  CHECK(all[0].name() == "errors");
  static_assert(HasState<Metric> && HasState<nn::Mean> && !nn::MetricType<nn::Mean>);

  struct Count {   // of a user's own
    std::int64_t n = 0;
    std::string name() const { return "count"; }
    void add(const Tensor& labels, const Tensor&, const Tensor&) { n += labels.size(); }
    double value() const { return static_cast<double>(n); }
    void reset() { n = 0; }
    Count& operator+=(const Count& o) { return n += o.n, *this; }
    SavedState state() const { return {.scalars = {{"n", value()}}}; }
    Commit prepare_restore(const SavedState& s) {
      return [this, n = s.scalars.at(0).value] { this->n = static_cast<std::int64_t>(n); };
    }
  };
  Metric count = Count();
  count.add(y, p);
  count.prepare_restore({.scalars = {{"n", 3}}})();
  CHECK(count.value() == 3);
}

TEST_CASE("errors of metrics name the metric", "[metrics]") {
  using S = ShapeError;
  using D = DTypeError;
  using A = ArgumentError;
  const Tensor two = tensor({0.5, 0.25}), three = tensor({1, 2, 0});
  CHECK(message_of<S>([&] { nn::MeanSquaredError().add(three, two); }) ==
        "mean_squared_error: labels and predictions do not have one shape: labels is i32[3], predictions is "
        "f32[2]; reshape one of them");
  CHECK(message_of<D>([&] { nn::AUC().add(astype(two, DType::c64), two); }) ==
        "auc: labels is c64[2], predictions is f32[2]; use real numbers");
  const auto auc_of = [](std::int64_t base) {
    const Tensor scores = tensor({base, base + 1, base + 2});
    nn::AUC auc;
    auc.add(tensor({0, 1, 1}), scores);
    return auc.value();
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  CHECK((auc_of(kMost - 3) == 1 && auc_of(-kMost + 1) == 1));
  CHECK(
      message_of<A>([&] { auc_of(kMost - 2); }) ==
      "auc: a prediction is 9007199254740992, and predictions are compared as f64, which has no odd numbers "
      "beyond 2^53; subtract the same number from all of them");
  CHECK_THROWS_AS(auc_of(-kMost), A);
  CHECK(message_of<A>([&] { nn::AUC().add(two, two); }) == "auc: a label is 0.5; use 0 and 1");
  CHECK(message_of<A>([&] { nn::F1().add(three, three); }) == "f1_score: a label is 2; use 0 and 1");
  CHECK(message_of<S>([&] {
          nn::Accuracy().add(three, zeros({3, 2, 2}));
        }) ==
        "accuracy: labels is i32[3], predictions is f32[3,2,2]; use [...] for classes, [...,classes] for "
        "scores "
        "and one-hot labels");
  CHECK(message_of<S>([&] {
          nn::F1({.classes = 4}).add(three, zeros({3, 2}));
        }) ==
        "f1_score: labels is i32[3], predictions is f32[3,2]; use [...] for classes, [...,4] for scores and "
        "one-hot labels");
  CHECK(message_of<D>([&] {
          nn::Accuracy().add(zeros({3}), zeros({3, 2}));
        }) == "accuracy: labels is f32[3]; use integers, or a further axis for the classes");
  CHECK(message_of<A>([&] {
          nn::Accuracy().add(three, zeros({3, 2}));
        }) == "accuracy: labels are from 0 to 2, out of range for 2 classes");
  CHECK(message_of<A>([&] { nn::ConfusionMatrix({.classes = 2}).add(tensor({1}), tensor({-1})); }) ==
        "confusion_matrix: predictions are from -1 to -1, out of range for 2 classes");
  CHECK(message_of<S>([&] { nn::TopKAccuracy(3).add(three, two); }) ==
        "top_3_accuracy: labels is i32[3], predictions is f32[2]; use [...] for classes, [...,classes] for "
        "scores "
        "and one-hot labels");
  CHECK(message_of<D>([&] {
          nn::Perplexity().add(three, zeros({3, 3}, DType::i32));
        }) == "perplexity: predictions is i32[3,3]; use logits");
  CHECK(message_of<S>([&] {
          nn::Accuracy().add(three, tensor({0, 1, 2}), two);
        }) ==
        "accuracy: weights do not have the shape of the first axes: weights is f32[2], labels is i32[3], "
        "predictions is i32[3]");
  CHECK(message_of<S>([&] { nn::Mean("loss").add(three, two); }) ==
        "loss: weights do not have the shape of the first axes: weights is f32[2], values is i32[3]");
  CHECK(message_of<A>([&] { nn::Mean("loss").add(1.0, NAN); }) == "loss: a weight is nan; use 0 or more");
  CHECK(message_of<A>([&] {
          nn::Mean().add(two, tensor({1.0, -2.0}));
        }) == "mean: a weight is -2; use 0 or more");
  CHECK(message_of<S>([&] {
          nn::MeanOf("m", [](const Tensor& z, const Tensor&) { return sum(z); }).add(two, two, two);
        }) == "m: there are [] values for examples of [2]");

  CHECK(message_of<A>([] { nn::TopKAccuracy(0); }) == "top_0_accuracy: k is 0; use 1 or more");
  CHECK(message_of<A>([] { nn::FScore(-1); }) == "f-1_score: beta is -1; use 0 or more");
  CHECK(message_of<A>([] { nn::Recall({.classes = -1}); }) ==
        "recall: classes is -1; use their number, or 0 for labels 0 and 1");
  CHECK(message_of<A>([] { nn::ConfusionMatrix({.classes = 3, .names = {"a"}}); }) ==
        "confusion_matrix: 1 names for 3 classes");
  CHECK(message_of<A>([] { nn::MeanOf("m", {}); }) == "m: the function is empty");

  nn::F1 of_two, f1({.classes = 3});
  CHECK(message_of<A>([&] { of_two += f1; }) ==
        "f1_score: 9 totals of f1_score cannot be added to 6; use metrics with the same options");
  CHECK(message_of<A>([&] { of_two.restore(f1.state()); }) == "restore: \"totals\" of f1_score is f64[9]");
  CHECK(message_of<A>([&] { of_two.restore({}); }) == "restore: tensor \"totals\" of f1_score is missing");
  Metric accuracy = nn::Accuracy();
  CHECK(message_of<A>([&] { accuracy += Metric(f1); }) == "accuracy: f1_score is a metric of another class");
}

TEST_CASE("scores of one class are no classes", "[metrics]") {
  const Tensor right = tensor({{1.0}, {0.0}}), wrong = tensor({{0.0}, {1.0}});
  for (const auto& [labels, scores] : {std::pair(right, wrong), std::pair(tensor({1, 0}), wrong),
                                       std::pair(tensor({1.0, 0.0}), tensor({0.2, 0.8}))})
    CHECK_THROWS_WITH(nn::Accuracy().add(labels, scores),
                      Catch::Contains("use a binary metric, such as BinaryAccuracy"));
  CHECK(value_of(nn::BinaryAccuracy(), right, wrong) == 0);
}

TEST_CASE("an FScore of a large beta is the recall, and of a small one the precision", "[metrics]") {
  const Tensor labels = tensor({1, 1, 1, 0}), predictions = tensor({1, 0, 0, 1});
  CHECK(value_of(nn::FScore(1e200), labels, predictions) == value_of(nn::Recall(), labels, predictions));
  CHECK(value_of(nn::FScore(1e-200), labels, predictions) == value_of(nn::Precision(), labels, predictions));
}

}   // namespace metrics_test
