// Properties of every layer: its defaults suit a short training, and replicas train it as a single network
// trains with the whole batch.
#include "nn/every_layer.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "closeness.h"
#include "data_folder.h"
#include "tapedeck/distribute.h"
#include "tapedeck/tapedeck.h"

namespace every_layer_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr std::int64_t kClasses = 4;

/// Points around the center of a class, far from 0; or ids of which each class has three.
Dataset classes_of(const LayerSample& s, std::int64_t rows, std::uint64_t seed) {
  const random::Key key{.seed = seed};
  const Tensor labels = astype(random::uniform({rows}, key.split(0), 0, kClasses), DType::i32);
  std::vector<std::int64_t> extents(s.example.begin(), s.example.end()), wide(extents.size() + 1, 1);
  extents.insert(extents.begin(), kClasses);
  wide[0] = rows;
  if (s.takes == LayerSample::Takes::ids) {
    extents[0] = rows;
    const Tensor any = astype(random::uniform(Shape(extents), key.split(1), 0, 3), DType::i32);
    return Dataset({reshape(labels, Shape(wide)) * 2 + any, labels});
  }
  const Tensor centers = random::normal(Shape(extents), {.seed = 5}) * 2.0 + 5.0;
  const Tensor x = gather(centers, labels);
  return Dataset({x + random::normal(x.shape(), key.split(1)), labels});
}

Tensor loss_of(const Tensor& labels, const Tensor& logits) {
  return mean(sparse_softmax_cross_entropy(labels, logits));
}

/// The accuracy in training, and of other data.
std::pair<double, double> accuracies(const LayerSample& s) {
  const Classifier network(s, kClasses);
  Adam adam({.learning_rate = 0.01});
  const nn::FitReport report = nn::fit(network, loss_of, adam, classes_of(s, 320, 1),
                                       {.epochs = 5,
                                        .batch = 16,
                                        .key = {.seed = 2},
                                        .validation = classes_of(s, 200, 3),
                                        .metrics = {nn::Accuracy()},
                                        .progress = nn::FitProgress::silent});
  return {report.history.back()["accuracy"], report.history.back()["validation_accuracy"]};
}

// The types of include/tapedeck/nn that take a tensor and return one; of a template, the names of its
// instances.
std::set<std::string> layers_of_headers() {
  std::set<std::string> found, templates;
  for (const auto& header :
       std::filesystem::directory_iterator(data_folder() / "../../include/tapedeck/nn")) {
    std::ifstream file(header.path());
    std::string line, type;
    bool internal = false, is_template = false;
    while (std::getline(file, line)) {
      if (line == "namespace detail {") internal = true;
      if (line.starts_with("}   // namespace detail")) internal = false;
      constexpr std::string_view of_axes = "template <int N> struct ";
      if (line.starts_with("struct ") || line.starts_with("class ") || line.starts_with(of_axes)) {
        is_template = line.starts_with(of_axes);
        std::istringstream words(is_template ? line.substr(of_axes.find("struct")) : line);
        words >> type >> type;
        if (type == "TAPEDECK_EXPORT") words >> type;
      }
      if (!internal && line.find(" operator()(const Tensor&") != line.npos)
        (is_template ? templates : found).insert(type);
      if (line.starts_with("using ")) {   // using Conv2d = Conv<2>;
        std::string name, instance;
        std::istringstream(line.substr(6)) >> name >> instance >> instance;
        if (templates.contains(instance.substr(0, instance.find('<')))) found.insert(name);
      }
    }
  }
  return found;
}

}   // namespace

TEST_CASE("every layer of the headers is in the table", "[nn]") {
  std::set<std::string> listed;
  for (const LayerSample& s : every_layer())
    listed.insert(s.name);
  CHECK(listed == layers_of_headers());
}

TEST_CASE("with its defaults every layer learns in five epochs", "[nn]") {
  for (const LayerSample& s : every_layer()) {
    const auto [training, validation] = accuracies(s);
    CAPTURE(s.name, training, validation);
    CHECK(training > 0.6);   // chance is 0.25
    CHECK(validation > training - 0.05);
  }
}

TEST_CASE("five epochs reveal a default that suits only long trainings", "[nn]") {
  const auto slow = [](random::Key) { return nn::BatchNorm(6, {.momentum = 0.99}); };
  const auto [training, validation] = accuracies({.name = "slow", .make = slow, .example = {6}});
  CHECK(training > 0.8);
  CHECK(validation < training - 0.05);
}

namespace {

constexpr std::int64_t kRows = 13;   // no number of replicas but 1 divides it

Tensor rows_of(const Tensor& x, Replica r) {
  return strided_slice(x, {{kRows * r.index / r.count, kRows * (r.index + 1) / r.count}});
}

/// Its variables after three steps on the sum over the rows.
std::vector<Tensor> trained(const LayerSample& s, const Replicas& replicas) {
  const Classifier network(s, kClasses);
  const Dataset data = classes_of(s, kRows, 7);
  GradientDescent descent({.learning_rate = 0.01});
  replicas.run([&](Replica r) {
    for (std::uint64_t step = 0; step < 3; ++step) {
      const nn::Run run{.training = true,
                        .key = random::Key{.seed = 8}.split(step).split(static_cast<std::uint64_t>(r.index))};
      descent.minimize([&] {
        const Tensor logits = network(rows_of(data.tensors()[0], r), run);
        return sum(sparse_softmax_cross_entropy(rows_of(data.tensors()[1], r), logits)) / double(kRows);
      });
    }
  });
  std::vector<Tensor> values;
  for (const NamedVariable& v : nn::variables(network))
    values.push_back(v.variable.value());
  return values;
}

}   // namespace

TEST_CASE("replicas train every layer", "[threads][nn]") {
  for (const LayerSample& s : every_layer()) {
    const std::vector<Tensor> one = trained(s, Replicas(1, {.reduction = LossReduction::sum}));
    for (const int count : {2, 3, 4}) {
      CAPTURE(s.name, count);
      const auto on_threads = [&](int threads) {
        return trained(s, Replicas(count, {.reduction = LossReduction::sum, .threads = threads}));
      };
      const std::vector<Tensor> many = on_threads(count);
      for (const int threads : {1, 2}) {
        const std::vector<Tensor> again = on_threads(threads);
        for (std::size_t i = 0; i < many.size(); ++i)
          CHECK(same_bits(many[i], again[i]));
      }
      if (s.mixes_rows) continue;
      for (std::size_t i = 0; i < many.size(); ++i)
        CHECK(max(abs(many[i] - one[i])).item() < 1e-6);
    }
  }
}

}   // namespace every_layer_test
