// Objects that are repeatedly created, used and destroyed: after the first rounds, memory and the number of
// allocations per round stay constant. TAPEDECK_ROUNDS sets the number of rounds; trainings and files run a
// quarter of it.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <list>
#include <thread>

#include "faults/faulty_memory.h"
#include "nn/every_layer.h"
#include "optim/any_rule.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/compile.h"
#include "tapedeck/dataset.h"
#include "tapedeck/distribute.h"
#include "tapedeck/gradient_transform.h"
#include "tapedeck/moving_average.h"
#include "tapedeck/npy.h"
#include "tapedeck/schedule.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training.h"
#include "tapedeck/training_log.h"
#include "temporary_folder.h"

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

using Use = std::function<void()>;   // makes an object, uses and destroys it

int rounds() {
  const char* text = std::getenv("TAPEDECK_ROUNDS");
  return text ? std::atoi(text) : 300;
}

/// How much memory and how many allocations more a round takes the longer it goes on; more than is by chance.
struct Growth {
  std::int64_t blocks, bytes, allocations;

  bool of_memory() const { return blocks > 0 || bytes != 0; }
  bool none() const { return !of_memory() && allocations <= 0; }
};
Growth growth_of(const Use& use, int n) {
  const auto run = [&] {
    const std::int64_t before = allocations();
    for (int i = 0; i < n; ++i)
      use();
    return allocations() - before;
  };
  run();
  const std::int64_t blocks = blocks_in_use(), bytes = live_bytes(), second = run(), third = run();
  const std::int64_t slack = n / 20 + 8;   // of threads that overlap by chance, and of tables that grow
  return {blocks_in_use() - blocks - slack, live_bytes() - bytes, third - second - second / 20 - slack};
}
/// races: how many allocations a use takes depends on which thread is first, so that they do not count.
void check_flat(const std::string& name, const Use& use, int n = rounds(), bool races = false) {
  const Growth g = growth_of(use, n);
  CAPTURE(name, g.blocks, g.bytes, g.allocations);
  CHECK((races ? !g.of_memory() : g.none()));
}

Tensor input_of(const LayerSample& s) {
  std::vector<std::int64_t> extents = {2};
  extents.insert(extents.end(), s.example.begin(), s.example.end());
  return ones(Shape(extents), s.takes == LayerSample::Takes::ids ? DType::i32 : DType::f32);
}

const Tensor& numbers() {
  static const Tensor x = random::normal({8, 4}, {.seed = 1});
  return x;
}
const Tensor& labels() {
  static const Tensor y = tensor({0, 1, 1, 0, 1, 0, 0, 1});
  return y;
}
Tensor quadratic(const Variable& v) { return sum(square(v)); }

struct Named {
  std::string name;
  Use use;
  bool races = false;   // see check_flat
};

std::vector<Named> transformations() {
  return {
      {"GradientTape",
       [] {
         GradientTape tape;
         tape.watch(numbers());
         (void)tape.gradient(sum(tanh(numbers())), numbers());
       }},
      {"GradientTape that is not asked",
       [] {
         GradientTape tape;
         tape.watch(numbers());
         const Tensor y = exp(numbers());
       }},
      {"GradientTape, nested",
       [] {
         GradientTape outer, inner;
         outer.watch(numbers()), inner.watch(numbers());
         const Gradient d = inner.gradient(sum(exp(numbers())), numbers());
         (void)outer.gradient(d.dense(), numbers());
       }},
      {"ForwardAccumulator",
       [] {
         ForwardAccumulator forward(numbers(), ones({8, 4}));
         (void)forward.jvp(sin(numbers()));
       }},
      {"jacobian", [] { (void)jacobian([](const Tensor& x) { return x * x; }, ones({3})); }},
      {"custom_gradient",
       [] {
         const auto f = custom_gradient([](const Tensor& x) {
           return std::pair(x * x, [x](const Tensor& dy) { return 2.0 * x * dy; });
         });
         GradientTape tape;
         tape.watch(numbers());
         (void)tape.gradient(sum(f(numbers())), numbers());
       }},
      {"an error while a tape records",
       [] {
         GradientTape tape;
         tape.watch(numbers());
         CHECK_THROWS_AS(matmul(exp(numbers()), numbers()), ShapeError);
       }},
      {"Compiled",
       [] {
         const auto f = compile([](const Tensor& x) { return sum(exp(x) * 2.0); });
         (void)f(numbers()), (void)f(numbers());
       }},
      {"Compiled, with a variable and a gradient",
       [] {
         const Variable w(ones({4}));
         const auto step = compile([&](const Tensor& x) {
           GradientTape tape;
           const Tensor loss = sum(tanh(x * w));
           w.assign_sub(tape.gradient(loss, w).dense() * 0.1);
           return loss;
         });
         step(numbers()), step(numbers());
       }},
      {"Compiled, of new shapes in each call",
       [] {
         static const auto f = compile([](const Tensor& x) { return x + x; });
         static std::int64_t n = 0;
         (void)f(ones({1 + n++ % 50}));
       }},
  };
}

std::vector<Named> training_objects() {
  return {
      {"Variable", [] { Variable(ones({4})).assign_add(ones({4})); }},
      {"nn::copy",
       [] {
         (void)nn::copy(nn::Sequential{nn::Dense(4, 4, {}), relu, nn::Dense(4, 2, {})});
       }},
      {"nn::summary", [] { (void)nn::summary(nn::Dense(4, 4, {}), numbers()); }},
      {"GradientAccumulator",
       [] {
         const Variable v(ones({4}));
         GradientAccumulator sum;
         for (int i = 0; i < 3; ++i)
           sum.add({{ones({4}), v}});
         (void)sum.state(), (void)sum.take_mean();
       }},
      {"LossScale",
       [] {
         const Variable v(ones({4}));
         GradientDescent descent({.learning_rate = 0.1});
         LossScale().minimize(descent, [&] { return quadratic(v); });
       }},
      {"MovingAverage", [] { MovingAverage(Variable(zeros({4}))).update(ones({4}), 0.9); }},
      {"WeightedMovingAverage", [] { (void)WeightedMovingAverage(0.9).update(ones({4}), tensor(2.0)); }},
      {"ExponentialMovingAverage",
       [] {
         const Variable v(ones({4}));
         ExponentialMovingAverage averages(0.9);
         averages.apply({{v}}), averages.apply("loss", tensor(1.0));
       }},
      {"variables that come and go beside an ExponentialMovingAverage",
       [] {
         static ExponentialMovingAverage averages(0.9);
         averages.apply({{Variable(ones({4}))}});
       }},
      {"variables that come and go beside an optimizer",
       [] {
         static Adam adam({.learning_rate = 0.1});
         const Variable v(ones({4}));
         adam.minimize([&] { return quadratic(v); });
       }},
      {"Optimizer with transformations and a schedule",
       [] {
         const Variable v(ones({4}));
         Adam adam({.learning_rate = schedule::cosine({.initial = 0.1, .steps = 10})});
         adam.add_transform(transforms::clip_global_norm(1.0));
         for (int i = 0; i < 2; ++i)
           adam.minimize([&] { return quadratic(v); });
         (void)adam.state();
       }},
      {"fit",
       [] {
         const nn::Dense net(4, 2, {});
         Adam adam({.learning_rate = 0.1});
         nn::fit(net,
                 [](const Tensor& y, const Tensor& p) { return mean(sparse_softmax_cross_entropy(y, p)); },
                 adam, Dataset({numbers(), labels()}),
                 {.epochs = 2,
                  .batch = 3,
                  .validation = 0.25,
                  .metrics = {nn::Accuracy(), nn::F1({.classes = 2}), nn::ConfusionMatrix({.classes = 2})},
                  .progress = nn::FitProgress::silent});
       }},
      {"metrics of scores",
       [] {
         const Tensor scores = sigmoid(slice(numbers(), {0, 0}, {8, 1}));
         for (nn::Metric metric : {nn::Metric(nn::AUC()), nn::Metric(nn::BinaryAccuracy()),
                                   nn::Metric(nn::MeanSquaredError()), nn::Metric(nn::RSquared())}) {
           metric.add(astype(labels(), DType::f32), reshape(scores, {8}));
           metric += nn::Metric(metric);
           (void)metric.value();
         }
       }},
      {"DataLoader, whole epochs",
       [] {
         const DataLoader loader(Dataset({numbers(), labels()}), {.batch = 3, .shuffle = true});
         for (int epoch = 0; epoch < 2; ++epoch)
           for (const Batch& b : loader.epoch(epoch))
             (void)sum(b[0]);
       }},
      {"DataLoader, left early",
       [] {
         const DataLoader loader(Dataset({numbers(), labels()}), {.batch = 1});
         for (const Batch& b : loader.epoch(0))
           if (sum(b[0]).item() < 1e9) break;
       }},
  };
}

std::vector<Named> files(const TemporaryFolder& folder) {
  return {
      {"Checkpoint",
       [&] {
         const Variable v(ones({4}));
         Adam adam({.learning_rate = 0.1});
         adam.minimize([&] { return quadratic(v); });
         Checkpoint checkpoint;
         checkpoint.add("v", v), checkpoint.add("adam", adam);
         checkpoint.save(folder / "a.safetensors"), checkpoint.restore(folder / "a.safetensors");
       }},
      {"safetensors",
       [&] {
         save_safetensors(folder / "b.safetensors", {{"x", numbers()}});
         (void)load_safetensors(folder / "b.safetensors");
       }},
      {"npy", [&] { save_npy(folder / "c.npy", numbers()), (void)load_npy(folder / "c.npy"); }},
      {"TrainingLog",
       [&] {
         TrainingLog(folder / "d.jsonl").write({{"step", 1}, {"loss", 0.5}});
       }},
  };
}

std::vector<Named> of_threads() {
  return {
      {"Replicas", [] { Replicas(3).run([](Replica) { sum_over_replicas(ones({100})); }); }},
      {"Replicas that train",
       [] {
         const Variable v(ones({4}));
         Momentum momentum({.learning_rate = 0.1, .momentum = 0.9});
         Replicas(2).run([&](Replica) { momentum.minimize([&] { return quadratic(v); }); });
       }},
      {"a thread that differentiates",
       [] {
         std::thread([] {
           GradientTape tape;
           tape.watch(numbers());
           (void)tape.gradient(sum(matmul(numbers(), transpose(numbers()))), numbers());
         }).join();
       }},
      {"a tensor that another thread frees",
       [] {
         Tensor x = ones({100});
         std::thread([y = std::move(x)]() mutable { y = {}; }).join();
       }},
      {"a compiled function that two threads call",
       [] {
         const auto f = compile([](const Tensor& x) { return x * 2.0; });
         std::thread([&] { (void)f(numbers()); }).join();
         (void)f(numbers());
       }},
      {"a compiled function that two threads call at once",
       [] {
         const auto f = compile([](const Tensor& x) { return x * 2.0; });
         std::thread other([&] { (void)f(numbers()); });
         (void)f(numbers());   // both record it, or one
         other.join();
       },
       true},
  };
}

}   // namespace

TEST_CASE("creating and destroying layers leaks nothing", "[life]") {
  for (const LayerSample& s : every_layer())
    check_flat(s.name, [&s, x = input_of(s)] {
      const nn::Layer layer = s.make({.seed = 1});
      GradientTape tape;
      const Tensor y = sum(layer(x, {.training = true, .key = {.seed = 2}}));
      const std::vector<Variable> variables = nn::trainable_variables(layer);
      if (!variables.empty()) (void)tape.gradient(y, variables);
    });
}

TEST_CASE("creating and destroying optimizers leaks nothing", "[life]") {
  for (const std::string_view rule : Optimizer::rules())
    check_flat(std::string(rule), [rule] {
      const Variable v(ones({4})), table(ones({5, 2}));
      Optimizer optimizer = optimizer_of(rule);
      for (int i = 0; i < 2; ++i)
        optimizer.minimize([&] { return quadratic(v) + sum(gather(table, tensor({1, 3}))); });
    });
}

TEST_CASE("creating and destroying tapes, transformations and compiled functions leaks nothing", "[life]") {
  for (const Named& n : transformations())
    check_flat(n.name, n.use);
}

TEST_CASE("creating and destroying the objects of a training leaks nothing", "[life]") {
  for (const Named& n : training_objects())
    check_flat(n.name, n.use, std::max(1, rounds() / 4));
}

TEST_CASE("reading and writing files leaks no memory", "[life]") {
  const TemporaryFolder folder;
  for (const Named& n : files(folder))
    check_flat(n.name, n.use, std::max(1, rounds() / 4));
}

TEST_CASE("starting and ending threads leaks nothing", "[life][threads]") {
  for (const Named& n : of_threads())
    check_flat(n.name, n.use, rounds(), n.races);
}

TEST_CASE("rounds that leak are found", "[life]") {
  std::vector<std::unique_ptr<int>> blocks;
  CHECK(growth_of([&] { blocks.push_back(std::make_unique<int>(1)); }, 100).blocks > 0);
  std::vector<Tensor> tensors;
  CHECK(growth_of([&] { tensors.push_back(ones({100})); }, 100).bytes > 0);
  std::size_t more = 0;
  CHECK(growth_of([&] { std::list<int>(more++).sort(); }, 100).allocations > 0);
  CHECK(growth_of([] { std::list<int>(5).sort(); }, 100).none());
}
