// fit: the bits of a hand-written loop, the conditions that end a training, its output and saved files, and
// trainings that are killed and restarted. Expected values are from loops written here with public functions,
// and from sequences with a closed form.
#include "tapedeck/nn/fit.h"

#include <catch2/catch.hpp>
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "message_of.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/nn/dense.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training.h"
#include "tapedeck/training_log.h"
#include "temporary_folder.h"
#include "warnings.h"

namespace fit_test {

using namespace tapedeck;
using namespace tapedeck::test;
using Catch::Matchers::StartsWith;

namespace {

/// A layer with dropout, and a running mean as batch normalization has it.
struct Network {
  Variable kernel{random::normal({4, 8}, {.seed = 1}), {.name = "kernel"}};
  Variable bias{zeros({8}), {.name = "bias"}};
  Variable output{random::normal({8, 1}, {.seed = 2}), {.name = "output"}};
  Variable mean{zeros({8}), {.name = "mean", .trainable = false}};

  Tensor operator()(const Tensor& x, nn::Run run) const {
    Tensor h = relu(matmul(x, kernel) + bias);
    if (run.training) {
      mean.assign(0.9 * mean.value() + 0.1 * tapedeck::mean(h, {0}));
      h = h * astype(less(random::uniform(h.shape(), run.key), 0.8), DType::f32);
    }
    return matmul(h - mean, output);
  }
};

Dataset data_of(std::int64_t rows) {
  const Tensor x = random::normal({rows, 4}, {.seed = 3});
  return Dataset({x, sum(x, {1}, {.keepdims = true})});
}

Tensor squared_error(const Tensor& labels, const Tensor& predictions) {
  return mean_squared_error(labels, predictions);
}

/// Values of variables, slots and counters, as numbers that have the same bits or are different.
std::vector<double> values_of(const Network& network, const Optimizer& optimizer) {
  std::vector<double> all;
  const auto add = [&](const Tensor& x) {
    for (const double v : x.to_vector())
      all.push_back(v);
  };
  for (const auto& [name, variable] : nn::variables(network))
    add(variable);
  for (const Tensor& x : optimizer.weights())
    add(x);
  return all;
}

constexpr random::Key kKey = {.seed = 5};

/// The training that fit's contract describes, and its numbers of each epoch.
std::vector<std::vector<double>> train_by_hand(const Network& network, Optimizer& optimizer,
                                               const Dataset& data, const Dataset& validation,
                                               std::int64_t epochs) {
  const DataLoader loader(data, {.batch = 8, .shuffle = true, .key = kKey.split(0)});
  std::vector<std::vector<double>> numbers;
  std::uint64_t n = 0;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    double loss_sum = 0;
    nn::MeanAbsoluteError error;
    for (const Batch& batch : loader.epoch(epoch)) {
      const nn::Run run = {.training = true, .key = kKey.split(1).split(n++)};
      Tensor predictions;
      const Tensor loss = optimizer.minimize(
          [&] { return mean(squared_error(batch[1], predictions = network(batch[0], run))); },
          {.variables = nn::trainable_variables(network)});
      error.add(batch[1], predictions);
      loss_sum += loss.item() * static_cast<double>(batch[0].shape()[0]);
    }
    numbers.push_back({loss_sum / static_cast<double>(data.size()), error.value()});
    double validation_loss = 0;
    error.reset();
    for (const Batch& batch : DataLoader(validation, {.batch = 8}).epoch(0)) {
      const Tensor predictions = network(batch[0], nn::Run{});
      error.add(batch[1], predictions);
      validation_loss +=
          mean(squared_error(batch[1], predictions)).item() * static_cast<double>(batch[0].shape()[0]);
    }
    numbers.back().push_back(validation_loss / static_cast<double>(validation.size()));
    numbers.back().push_back(error.value());
  }
  return numbers;
}

/// A number that each step moves by 0.1 from 0, whatever the data; validation wants it to be 0.35.
struct Climber {
  Variable place{tensor(0.0, DType::f64), {.name = "place"}};
  Tensor operator()(const Tensor& x) const { return place + 0.0 * x; }
};
Tensor climb(const Climber& network, const Batch& batch, const nn::Run& run) {
  const Tensor place = mean(network(batch[0]));
  return run.training ? -place : abs(place - 0.35);
}
Dataset one_row() { return Dataset({ones({1}, DType::f64)}); }

}   // namespace

TEST_CASE("fit: the bits of a loop by hand", "[fit]") {
  const Dataset data = data_of(50);
  const Network by_hand, network;
  Adam adam({.learning_rate = 0.01}), other_adam({.learning_rate = 0.01});
  const auto numbers = train_by_hand(by_hand, adam, data.range(0, 40), data.range(40, 50), 3);
  REQUIRE(numbers[2][0] < numbers[0][0]);

  const nn::FitReport report = nn::fit(network, squared_error, other_adam, data,
                                       {.epochs = 3,
                                        .batch = 8,
                                        .key = kKey,
                                        .validation = 0.2,
                                        .metrics = {nn::MeanAbsoluteError()},
                                        .progress = nn::FitProgress::silent});
  CHECK(values_of(network, other_adam) == values_of(by_hand, adam));
  REQUIRE(report.history.size() == 3);
  for (std::size_t e = 0; e < 3; ++e)
    CHECK(report.history[e].numbers ==
          std::vector<nn::NamedNumber>{{"loss", numbers[e][0]},
                                       {"mean_absolute_error", numbers[e][1]},
                                       {"validation_loss", numbers[e][2]},
                                       {"validation_mean_absolute_error", numbers[e][3]}});
  CHECK(report.steps == 15);
  CHECK(report.history[1].steps == 10);
  CHECK_FALSE(report.stopped_early);
  CHECK(report.best_epoch == 2);
}

TEST_CASE("fit: a loader, and a loss of the network and the batch", "[fit]") {
  const Dataset data = data_of(40);
  const Network by_hand, network;
  Adam adam({.learning_rate = 0.01}), other_adam({.learning_rate = 0.01});
  train_by_hand(by_hand, adam, data, data, 2);
  const auto loss = [](const Network& n, const Batch& batch, nn::Run run) {
    const Tensor predictions = n(batch[0], run);
    return nn::BatchResult{squared_error(batch[1], predictions), batch[1], predictions};
  };
  const nn::FitReport report = nn::fit(
      network, loss, other_adam, DataLoader(data, {.batch = 8, .shuffle = true, .key = kKey.split(0)}),
      {.epochs = 2, .key = kKey, .metrics = {nn::MeanAbsoluteError()}, .progress = nn::FitProgress::silent});
  CHECK(values_of(network, other_adam) == values_of(by_hand, adam));
  CHECK(report.history[1].numbers.size() == 2);
}

TEST_CASE("fit: reports print as fit draws them", "[fit]") {
  const nn::EpochReport first = {.epoch = 0, .steps = 5, .numbers = {{"loss", 0.25}}},
                        second = {.epoch = 1, .steps = 10, .numbers = {{"loss", 0.125}, {"accuracy", 1}}};
  std::ostringstream out;
  out << second << '\n'
      << nn::FitReport{.history = {first, second}, .best_epoch = 1, .steps = 10, .seconds = 0.5};
  CHECK(out.str() ==
        "epoch 2  loss 0.125  accuracy 1\n"
        "epoch 1  loss 0.25\nepoch 2  loss 0.125  accuracy 1\n10 steps in 0.5 s, best epoch 2");
  out.str("");
  out << nn::FitReport{.stopped_early = true, .steps = 3, .resumed_at = 2};
  CHECK(out.str() == "3 steps in 0.0 s, resumed after step 2, stopped early");
}

TEST_CASE("fit: several batches make a step, and an epoch ends with one", "[fit]") {
  const Dataset data = data_of(40);
  const Network by_hand, network;
  Adam adam({.learning_rate = 0.01}), other_adam({.learning_rate = 0.01});
  LossScale scale({.growth_interval = 2}), other_scale({.growth_interval = 2});
  const DataLoader loader(data, {.batch = 8, .shuffle = true, .key = kKey.split(0)});
  std::uint64_t n = 0;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    GradientAccumulator accumulator;
    std::int64_t batches = 0;
    for (const Batch& batch : loader.epoch(epoch)) {
      const nn::Run run = {.training = true, .key = kKey.split(1).split(n++)};
      accumulator.add(Optimizer::compute_gradients(
          [&] { return scale.scale(mean(squared_error(batch[1], by_hand(batch[0], run)))); }));
      if (++batches % 3 != 0 && batches < 5) continue;
      auto pairs = accumulator.take_mean();
      if (scale.unscale(pairs)) adam.apply_gradients(pairs);
    }
  }
  std::vector<std::int64_t> steps;
  const nn::FitReport report = nn::fit(network, squared_error, other_adam, data,
                                       {.epochs = 2,
                                        .batch = 8,
                                        .key = kKey,
                                        .accumulate = 3,
                                        .loss_scale = &other_scale,
                                        .on_batch = [&](nn::BatchReport& r) { steps.push_back(r.steps); },
                                        .progress = nn::FitProgress::silent});
  CHECK(values_of(network, other_adam) == values_of(by_hand, adam));
  CHECK(other_scale.value() == scale.value());
  CHECK(steps == std::vector<std::int64_t>{0, 0, 1, 1, 2, 2, 2, 3, 3, 4});
  CHECK(report.steps == 4);
}

TEST_CASE("fit: only the given variables are trained", "[fit]") {
  const Network network;
  const std::vector<double> kernel = network.kernel.value().to_vector(),
                            output = network.output.value().to_vector();
  Adam adam;
  nn::fit(network, squared_error, adam, data_of(8),
          {.variables = {{network.output}}, .progress = nn::FitProgress::silent});
  CHECK(network.kernel.value().to_vector() == kernel);
  CHECK(network.output.value().to_vector() != output);
}

TEST_CASE("fit: early stopping", "[fit]") {
  // After epoch e the place is 0.1 (e + 1): the validation losses are 0.25, 0.15, 0.05, 0.05 (less by
  // rounding, or more), 0.15, ….
  const auto train = [](nn::EarlyStopping stopping, const Climber& network, std::int64_t epochs = 20) {
    GradientDescent descent({.learning_rate = 0.1});
    return nn::fit(network, climb, descent, one_row(),
                   {.epochs = epochs,
                    .validation = one_row(),
                    .early_stopping = stopping,
                    .progress = nn::FitProgress::silent});
  };
  {
    const Climber network;
    const nn::FitReport report = train({.patience = 2, .min_delta = 0.01}, network);
    CHECK(report.best_epoch == 2);
    CHECK(report.stopped_early);
    CHECK(report.history.size() == 5);
    CHECK(network.place.value().item() == Approx(0.5));
  }
  {
    const Climber network;
    const nn::FitReport report = train({.patience = 3, .min_delta = 0.01, .restore_best = true}, network);
    CHECK(report.history.size() == 6);
    CHECK(network.place.value().item() == Approx(0.3));
  }
  {   // each epoch is better by 0.1, which is not enough
    const Climber network;
    const nn::FitReport report = train({.patience = 2, .min_delta = 0.11}, network);
    CHECK(report.best_epoch == 2);   // 0.05 against 0.25
    CHECK(report.history.size() == 5);
  }
  {   // the best variables come back also where the epochs end first
    const Climber network;
    const nn::FitReport report = train({.patience = 9, .min_delta = 0.01, .restore_best = true}, network, 5);
    CHECK_FALSE(report.stopped_early);
    CHECK(network.place.value().item() == Approx(0.3));
  }
}

TEST_CASE("fit: the monitor decides which epoch is best", "[fit]") {
  const auto best_of = [](const std::string& monitor, std::optional<bool> larger) {
    const Climber network;
    GradientDescent descent({.learning_rate = 0.1});
    return *nn::fit(network, climb, descent, one_row(),
                    {.epochs = 5,
                     .validation = one_row(),
                     .monitor = monitor,
                     .larger_is_better = larger,
                     .progress = nn::FitProgress::silent})
                .best_epoch;
  };
  CHECK(best_of("loss", {}) == 4);
  CHECK(best_of("loss", true) == 0);
  CHECK(best_of("validation_loss", true) == 0);

  const Climber network;   // a monitor that is NaN is never best
  GradientDescent descent({.learning_rate = 0.1});
  const auto nan = [](const Climber& n, const Batch& b, const nn::Run& run) {
    return climb(n, b, run) * NAN;
  };
  const nn::FitReport report = nn::fit(network, nan, descent, one_row(),
                                       {.epochs = 9,
                                        .early_stopping = {{.patience = 3, .restore_best = true}},
                                        .progress = nn::FitProgress::silent});
  CHECK_FALSE(report.best_epoch);
  CHECK(report.history.size() == 3);
}

TEST_CASE("fit: callbacks see and stop a training", "[fit]") {
  const Network network;
  Adam adam;
  std::vector<double> losses;
  nn::FitReport report = nn::fit(network, squared_error, adam, data_of(40),
                                 {.epochs = 3,
                                  .batch = 8,
                                  .on_epoch =
                                      [&](nn::EpochReport& r) {
                                        losses.push_back(r["loss"]);
                                        r.stop = r.epoch == 1;
                                      },
                                  .progress = nn::FitProgress::silent});
  CHECK(report.stopped_early);
  CHECK(report.history.size() == 2);
  CHECK(losses == std::vector<double>{report.history[0]["loss"], report.history[1]["loss"]});
  CHECK(message_of<ArgumentError>([&] { report.history[0]["accuracy"]; }) ==
        "epoch_report: there is no \"accuracy\"; use one of loss");

  std::vector<std::int64_t> seen;
  const auto stop_in_a_step = [&](nn::BatchReport& r) {
    seen.push_back(r.batch);
    r.stop = r.epoch == 1 && r.batch == 2;
  };
  report = nn::fit(network, squared_error, adam, data_of(40),
                   {.epochs = 3,
                    .batch = 8,
                    .accumulate = 2,
                    .on_batch = stop_in_a_step,
                    .progress = nn::FitProgress::silent});
  CHECK(seen == std::vector<std::int64_t>{0, 1, 2, 3, 4, 0, 1, 2, 3});   // the step is completed
  CHECK(report.history.size() == 1);
  CHECK(report.steps == 5);
}

TEST_CASE("fit: an exception leaves the last complete step", "[fit][errors]") {
  struct Stop {};
  const Dataset data = data_of(40);
  for (const int at : {0, 3, 7}) {
    const Network by_hand, network;
    Adam adam, other_adam;
    const DataLoader loader(data, {.batch = 8, .shuffle = true, .key = kKey.split(0)});
    int n = 0;
    for (std::int64_t epoch = 0; epoch < 2; ++epoch)
      for (const Batch& batch : loader.epoch(epoch))
        if (n < at) {
          const nn::Run run = {.training = true, .key = kKey.split(1).split(static_cast<std::uint64_t>(n++))};
          adam.minimize([&] { return mean(squared_error(batch[1], by_hand(batch[0], run))); });
        }
    int calls = 0;
    const auto loss = [&](const Tensor& labels, const Tensor& predictions) {
      if (calls++ == at) throw Stop();
      return squared_error(labels, predictions);
    };
    CHECK_THROWS_AS(nn::fit(network, loss, other_adam, data,
                            {.epochs = 2, .batch = 8, .key = kKey, .progress = nn::FitProgress::silent}),
                    Stop);
    network.mean.assign(by_hand.mean);   // which the network has assigned itself
    CHECK(values_of(network, other_adam) == values_of(by_hand, adam));
  }
}

namespace {

constexpr std::int64_t kEpochs = 3, kBatches = 5;   // with 40 rows in batches of 8

/// What is the same whether a training was interrupted or not.
struct Outcome {
  std::vector<double> values;
  std::vector<nn::EpochReport> history;
  std::string log, notes;
  std::int64_t steps;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// One attempt at a training that goes on in this folder. `at_batch` gets the number of each batch, over all
/// epochs, and may throw.
struct Attempt {
  const std::string folder;
  std::int64_t every_steps = 0, accumulate = 1, every_epochs = 1;
  std::function<void(std::int64_t)> at_batch = [](std::int64_t) {};
  std::function<void(const nn::EpochReport&)> at_epoch = [](const nn::EpochReport&) {};
  std::int64_t epochs = kEpochs;
  std::optional<std::int64_t> resumed_at = {};

  Outcome run() {
    const Network network;
    Adam adam({.learning_rate = 0.01});
    LossScale scale({.growth_interval = 4});
    TrainingLog log(folder + "/log.jsonl");
    double weighted = 0;   // a callback's own state
    nn::FitOptions options = {.epochs = epochs,
                              .batch = 8,
                              .key = kKey,
                              .validation = 0.2,
                              .metrics = {nn::MeanAbsoluteError()},
                              .accumulate = accumulate,
                              .loss_scale = &scale,
                              .early_stopping = {{.patience = 9, .restore_best = true}},
                              .log = &log,
                              .log_steps = 2,
                              .progress = nn::FitProgress::silent};
    options.checkpoints = {{.folder = folder + "/checkpoints",
                            .every_epochs = every_epochs,
                            .every_steps = every_steps,
                            .keep_best = true,
                            .add = [&](Checkpoint& c) { c.add("weighted", weighted); }}};
    options.on_batch = [&](nn::BatchReport& r) {
      at_batch(r.epoch * kBatches + r.batch);
      weighted = 0.5 * weighted + r.loss;
    };
    options.on_epoch = [&](nn::EpochReport& r) { at_epoch(r); };
    const nn::FitReport report = nn::fit(network, squared_error, adam, data_of(50), options);
    resumed_at = report.resumed_at;
    std::vector<double> values = values_of(network, adam);
    values.insert(values.end(), {scale.value(), weighted, static_cast<double>(*report.best_epoch)});
    return {values, report.history, text_of(folder + "/log.jsonl"),
            text_of(folder + "/checkpoints/best.safetensors"), report.steps};
  }
};

struct Killed {};

}   // namespace

TEST_CASE("fit: a training that is interrupted at any step gives the same bits", "[fit][checkpoint]") {
  struct Case {
    std::int64_t every_steps, accumulate, every_epochs;
  };
  for (const auto [every_steps, accumulate, every_epochs] :
       {Case{0, 1, 1}, {2, 1, 1}, {1, 2, 0}, {3, 2, 2}}) {
    const TemporaryFolder whole;
    const Outcome expected = Attempt{whole.path(), every_steps, accumulate, every_epochs}.run();
    REQUIRE(expected.history.size() == kEpochs);
    for (std::int64_t k = 0; k < kEpochs * kBatches; ++k) {
      CAPTURE(every_steps, accumulate, every_epochs, k);
      const TemporaryFolder folder;
      Attempt attempt = {folder.path(), every_steps, accumulate, every_epochs};
      attempt.at_batch = [&](std::int64_t n) {
        if (n == k) throw Killed();
      };
      CHECK_THROWS_AS(attempt.run(), Killed);
      attempt.at_batch = [](std::int64_t) {};
      CHECK(attempt.run() == expected);
      CHECK(attempt.resumed_at);
    }
  }
}

TEST_CASE("fit: a training that is killed repeatedly gives the same bits", "[fit][checkpoint]") {
  const TemporaryFolder whole, folder;
  const Outcome expected = Attempt{whole.path(), 2}.run();
  for (const std::int64_t k : {3, 4, 7, 9, 14}) {
    const pid_t child = fork();
    if (child == 0) {
      Attempt attempt = {folder.path(), 2};
      attempt.at_batch = [&](std::int64_t n) {
        if (n == k) ::raise(SIGKILL);
      };
      attempt.run();
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
  }
  Attempt last = {folder.path(), 2};
  CHECK(last.run() == expected);
  CHECK(last.resumed_at == 14);
}

TEST_CASE("fit: an end of an epoch that throws is repeated", "[fit][checkpoint]") {
  const TemporaryFolder whole, folder;
  const Outcome expected = Attempt{whole.path(), 5}.run();
  for (const std::int64_t epoch : {0, 1, 2}) {
    Attempt attempt = {folder.path(), 5};
    attempt.at_epoch = [&](const nn::EpochReport& r) {
      if (r.epoch == epoch) throw Killed();
    };
    CHECK_THROWS_AS(attempt.run(), Killed);
  }
  Attempt last = {folder.path(), 5};
  CHECK(last.run() == expected);
  CHECK(last.resumed_at == 15);
}

TEST_CASE("fit: a complete training is not repeated, and can be extended", "[fit][checkpoint]") {
  const TemporaryFolder folder, whole;
  Attempt attempt = {folder.path()};
  const Outcome first = attempt.run();
  bool trained = false;
  attempt.at_batch = [&](std::int64_t) { trained = true; };
  CHECK(attempt.run() == first);
  CHECK_FALSE(trained);

  attempt.epochs = kEpochs + 2;
  Attempt longer = {whole.path()};
  longer.epochs = kEpochs + 2;
  CHECK(attempt.run() == longer.run());
}

TEST_CASE("fit: the contents of a folder of checkpoints", "[fit][checkpoint]") {
  const TemporaryFolder folder;
  const Climber network;
  GradientDescent descent({.learning_rate = 0.1});
  const auto train = [&](const Climber& climber, std::int64_t epochs) {
    return nn::fit(climber, climb, descent, one_row(),
                   {.epochs = epochs,
                    .validation = one_row(),
                    .early_stopping = {{.patience = 2, .min_delta = 0.01}},
                    .checkpoints = {{.folder = folder.path(), .keep_last = 2, .keep_best = true}},
                    .progress = nn::FitProgress::silent});
  };
  train(network, 9);
  CHECK(CheckpointFolder(folder.path()).steps() == std::vector<std::int64_t>{4, 5});
  const auto best = load_safetensors(folder / "best.safetensors");
  REQUIRE(best.size() == 1);
  CHECK(best.at("network/place").item() == Approx(0.3));

  const Climber again;   // it stays ended
  const nn::FitReport report = train(again, 20);
  CHECK(report.stopped_early);
  CHECK(report.resumed_at == 5);
  CHECK(again.place.value().item() == network.place.value().item());
}

TEST_CASE("fit: early stopping resumes its count and its best epoch", "[fit][checkpoint]") {
  for (std::int64_t interrupted = 0; interrupted < 6; ++interrupted) {
    const TemporaryFolder folder;
    const auto train = [&](const Climber& network, std::int64_t killed_at) {
      GradientDescent descent({.learning_rate = 0.1});
      return nn::fit(network, climb, descent, one_row(),
                     {.epochs = 20,
                      .validation = one_row(),
                      .early_stopping = {{.patience = 3, .min_delta = 0.01, .restore_best = true}},
                      .checkpoints = {{.folder = folder.path()}},
                      .on_epoch =
                          [&](nn::EpochReport& r) {
                            if (r.epoch == killed_at) throw Killed();
                          },
                      .progress = nn::FitProgress::silent});
    };
    const Climber first, second;
    CHECK_THROWS_AS(train(first, interrupted), Killed);
    const nn::FitReport report = train(second, -1);
    CHECK(report.resumed_at == interrupted);
    CHECK(report.history.size() == 6);
    CHECK(report.best_epoch == 2);
    CHECK(second.place.value().item() == Approx(0.3));
  }
}

TEST_CASE("fit: checkpoints of another training are refused", "[fit][checkpoint][errors]") {
  const TemporaryFolder folder;
  const auto train = [&](nn::FitOptions options, std::int64_t rows = 40) {
    const Network network;
    Adam adam;
    options.batch = options.batch.value_or(8);
    options.checkpoints = {{.folder = folder.path(), .every_steps = 1}};
    options.progress = nn::FitProgress::silent;
    nn::fit(network, squared_error, adam, data_of(rows), options);
  };
  train({.epochs = 2, .on_batch = [](nn::BatchReport& r) { r.stop = r.epoch == 1; }});
  CHECK(message_of<ArgumentError>([&] { train({.epochs = 2, .batch = 10}); }) ==
        "fit: checkpoints: the last one is at batch 1 of 5, but an epoch now has 4; use the data and the "
        "batch size with which it was made, or another folder");
  CHECK(message_of<ArgumentError>([&] { train({.epochs = 2, .validation = data_of(10)}); }) ==
        "fit: checkpoints: the last one has no \"validation_loss\" for its 1 epochs; use the metrics and the "
        "validation with which it was made, or another folder");
  CHECK(
      message_of<ArgumentError>([&] { train({.epochs = 2, .early_stopping = {{.restore_best = true}}}); }) ==
      "fit: restore_best: the last checkpoint was made without it, so the best variables are unknown; leave "
      "it out, or use another folder");
}

TEST_CASE("fit: a checkpoint with an impossible state changes nothing", "[fit][checkpoint][errors]") {
  const TemporaryFolder folder;
  const auto train = [&](const Network& network, std::int64_t epochs) {
    Adam adam;
    nn::fit(network, squared_error, adam, data_of(40),
            {.epochs = epochs,
             .batch = 8,
             .checkpoints = {{.folder = folder.path()}},
             .progress = nn::FitProgress::silent});
  };
  train(Network(), 2);
  const std::string path = CheckpointFolder(folder.path()).latest().value();
  const NamedTensors whole = load_safetensors(path);
  const auto refused = [&](const std::string& name, const Tensor& x) {
    NamedTensors changed = whole;
    changed[name] = x;
    save_safetensors(path, changed);
    const Network network;
    const Tensor before = network.kernel.value();
    const std::string message = message_of<FileError>([&] { train(network, 3); }),
                      begin = "restore: " + path + ": \"fit\": ";
    CHECK(network.kernel.value().to_vector() == before.to_vector());
    return message.starts_with(begin) ? message.substr(begin.size()) : message;
  };
  const auto number = [](double n) { return tensor(n, DType::f64); };
  CHECK(refused("fit/best_epoch", number(0.5)) ==
        "best_epoch of fit is 0.5; use a whole number of -1 or more");
  CHECK(refused("fit/best_epoch", number(1e300)) ==
        "best_epoch of fit is 1e+300; use a whole number of -1 or more");
  CHECK(refused("fit/best_epoch", number(2)) == "best_epoch of fit is 2, of 2 epochs");
  CHECK(refused("fit/log_size", number(-2)) == "log_size of fit is -2; use a whole number of -1 or more");
  CHECK(refused("fit/log_size", number(NAN)) == "log_size of fit is nan; use a whole number of -1 or more");
  CHECK(refused("fit/batch", number(6)) == "batch of fit is 6, but an epoch has 5");
  CHECK(refused("fit/history/step", tensor({5.0, INFINITY}, DType::f64)) ==
        "history/step of fit is inf; use a whole number of 0 or more");
  save_safetensors(path, whole);
  train(Network(), 3);
}

namespace {

/// What f writes to standard error.
std::string errors_of(const std::function<void()>& f) {
  const TemporaryFolder folder;
  const int before = ::dup(STDERR_FILENO);
  REQUIRE(std::freopen((folder / "err").c_str(), "w", stderr));
  f();
  std::fflush(stderr);
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  return text_of(folder / "err");
}

std::string shown(nn::FitProgress progress) {
  return errors_of([&] {
    const Network network;
    Adam adam;
    nn::fit(network, squared_error, adam, data_of(40),
            {.epochs = 2,
             .batch = 8,
             .validation = 0.2,
             .metrics = {nn::MeanAbsoluteError()},
             .progress = progress});
  });
}

}   // namespace

TEST_CASE("fit: progress is a line an epoch, or a bar", "[fit]") {
  using Catch::Matchers::Matches;
  const std::string number = "[0-9.]+",
                    four = "  loss " + number + "  mean_absolute_error " + number + "  validation_loss " +
                           number + "  validation_mean_absolute_error " + number,
                    line = four + "  [0-9]+\\.[0-9] s  [0-9]+ rows/s\n";
  const std::string lines = "epoch 1/2" + line + "epoch 2/2" + line;
  CHECK_THAT(shown(nn::FitProgress::lines), Matches(lines));
  CHECK_THAT(shown(nn::FitProgress::automatic), Matches(lines));   // a file is no terminal
  CHECK(shown(nn::FitProgress::silent).empty());
  const std::string bar = shown(nn::FitProgress::bar);
  CHECK_THAT(bar, StartsWith("\repoch 1/2 [======..................] 1/4  "));
  CHECK_THAT(bar, Catch::Matchers::Contains("\r\x1b[Kepoch 2/2  loss "));
  CHECK(std::count(bar.begin(), bar.end(), '\n') == 2);
  const std::string left = errors_of([&] {   // a line that is not finished is ended
    const Network network;
    Adam adam;
    nn::fit(network, squared_error, adam, data_of(40),
            {.on_batch = [](nn::BatchReport& r) { r.stop = true; }, .progress = nn::FitProgress::bar});
  });
  CHECK(left.ends_with("\x1b[K\n"));
}

TEST_CASE("fit: errors name the option", "[fit][errors]") {
  const auto message = [](const nn::FitOptions& options, const nn::FitData& data = data_of(8)) {
    const Network network;
    Adam adam;
    return message_of<ArgumentError>([&] { nn::fit(network, squared_error, adam, data, options); });
  };
  const DataLoader loader(data_of(8));
  CHECK(message({.epochs = 0}) == "fit: epochs is 0; use 1 or more");
  CHECK(message({.batch = 0}) == "fit: batch is 0; use 1 or more");
  CHECK(message({.batch = 4}, loader) ==
        "fit: batch has no effect on a DataLoader; set it in DataLoaderOptions instead");
  CHECK(message({.shuffle = true}, loader) ==
        "fit: shuffle has no effect on a DataLoader; set it in DataLoaderOptions instead");
  CHECK(message({.validation = 0.5}, loader) ==
        "fit: validation is 0.5 of the data, which is a loader; pass a data set or a loader for validation");
  CHECK(
      message({.validation = 0.01}) ==
      "fit: validation is 0.01 of 8 rows; use a fraction that leaves rows for both training and validation");
  CHECK_THAT(message({.validation = 1}), StartsWith("fit: validation is 1 of 8 rows"));
  CHECK_THAT(message({.validation = NAN}), StartsWith("fit: validation is nan of 8 rows"));
  CHECK(message({}, data_of(8).range(0, 0)) == "fit: the data has no batches");
  CHECK(
      message({.metrics = {nn::MeanAbsoluteError(), nn::MeanAbsoluteError()}}) ==
      "fit: metrics: the name \"mean_absolute_error\" is empty or already in use; use Metric(name, metric)");
  CHECK_THAT(message({.metrics = {{"loss", nn::MeanAbsoluteError()}}}),
             StartsWith("fit: metrics: the name \"loss\" is"));
  CHECK(message({.accumulate = 0}) == "fit: accumulate is 0; use 1 or more");
  CHECK(message({.monitor = "accuracy"}) == "fit: monitor is \"accuracy\"; use one of loss");
  CHECK(message({.metrics = {nn::MeanAbsoluteError()}, .monitor = "mean_absolute_error"}) ==
        "fit: monitor is \"mean_absolute_error\"; set larger_is_better too, to true or false");
  CHECK(message({.early_stopping = {{.patience = 0}}}) == "fit: early_stopping.patience is 0; use 1 or more");
  CHECK(message({.early_stopping = {{.min_delta = NAN}}}) ==
        "fit: early_stopping.min_delta is nan; use 0 or more");
  CHECK(message({.checkpoints = {{.folder = ""}}}) ==
        "fit: checkpoints.folder has no name; use \".\" for this one");
  CHECK(message({.log_steps = -1}) == "fit: log_steps is -1; use 0 or more");
  CHECK(message({.log_steps = 2}) == "fit: log_steps is set without a log; set log too");
  CHECK(message({}, Dataset({ones({2, 4})})) ==
        "fit: a batch has 1 tensors, and a loss of (labels, predictions) takes inputs and labels; use a loss "
        "of "
        "(network, batch, run)");

  const Climber network;
  GradientDescent descent({.learning_rate = 0.1});
  const auto trained = [&](const auto& loss, const nn::FitOptions& options = {}) {
    return message_of<ArgumentError>([&] { nn::fit(network, loss, descent, one_row(), options); });
  };
  const std::string both =
      "fit: metrics need labels and predictions; use a loss of (labels, predictions), or return a "
      "BatchResult "
      "with both";
  CHECK(trained(climb, {.metrics = {nn::MeanAbsoluteError()}}) == both);
  for (const bool has_labels : {false, true})
    CHECK(trained(
              [&](const Climber& net, const Batch& batch, nn::Run run) {
                const Tensor one = ones({1});
                return nn::BatchResult{climb(net, batch, run), has_labels ? one : Tensor(),
                                       has_labels ? Tensor() : one};
              },
              {.metrics = {nn::MeanAbsoluteError()}}) == both);
  CHECK(trained([](const Climber&, const Batch&, nn::Run) { return Tensor(); }) ==
        "fit: the loss is undefined; return a tensor");
  CHECK(message_of<ArgumentError>([&] { nn::evaluate(network, climb, one_row(), {.batch = 0}); }) ==
        "evaluate: batch is 0; use 1 or more");
}

TEST_CASE("evaluate: means over rows, without a tape", "[fit]") {
  const Network network;
  const Dataset data = data_of(50);
  const Tensor predictions = network(data.tensors()[0], nn::Run{});
  const GradientTape tape;
  const auto numbers =
      nn::evaluate(network, squared_error, data, {.batch = 16, .metrics = {nn::MeanAbsoluteError()}});
  CHECK(tape.watched_variables().empty());
  REQUIRE(numbers.size() == 2);
  CHECK(numbers[0].name == "loss");
  CHECK(numbers[0].value == Approx(mean(square(data.tensors()[1] - predictions)).item()));
  CHECK(numbers[1].name == "mean_absolute_error");
  CHECK(numbers[1].value == Approx(mean(abs(data.tensors()[1] - predictions)).item()));
}

TEST_CASE("fit does not save variables that it trains outside the network", "[fit]") {
  const TemporaryFolder folder;
  const nn::Dense network(3, 1, {.seed = 1});
  const Variable gain(ones({1}), {.name = "gain"});
  const Tensor x = random::normal({16, 3}, {.seed = 1});
  const auto train = [&](nn::FitOptions options) {
    options.epochs = 1, options.progress = nn::FitProgress::silent;
    options.variables = {{network.kernel, gain}};
    options.validation = Dataset({x, sum(x, 1, {.keepdims = true})});
    Optimizer sgd = GradientDescent({.learning_rate = 0.1});
    nn::fit(
        network, [&](const Tensor& z, const Tensor& p) { return square(z - p * gain); }, sgd,
        Dataset({x, sum(x, 1, {.keepdims = true})}), options);
  };
  const std::string text = "fit: variable \"gain\" is trained but is not part of the network";
  CHECK_THROWS_WITH(train(nn::FitOptions{.checkpoints = {{.folder = folder.path()}}}), Catch::Contains(text));
  CHECK_THROWS_WITH(train(nn::FitOptions{.early_stopping = {{.restore_best = true}}}), Catch::Contains(text));
  CHECK(gain.value().item() == 1);
  CHECK_NOTHROW(train({}));
}

TEST_CASE("fit: a loss of all pairs of rows is warned of once", "[fit]") {
  const Warnings warnings;
  const auto train = [](const Tensor& y) {
    const nn::Dense line(4, 1, {.seed = 1});
    GradientDescent descent({.learning_rate = 0.1});
    const Tensor x = random::normal({8, 4}, {.seed = 2});
    nn::fit(line, [](const Tensor& a, const Tensor& b) { return square(a - b); }, descent, Dataset({x, y}),
            {.epochs = 3, .batch = 4, .progress = nn::FitProgress::silent});
  };
  train(ones({8, 1}));
  CHECK(warnings.texts.empty());
  train(ones({8}));
  CHECK(warnings.texts ==
        std::vector<std::string>{
            "fit: the loss is f32[4,4], more elements than labels or predictions have: labels f32[4] "
            "broadcast with predictions f32[4,1]; reshape one of them"});
}

TEST_CASE("fit: a complete training leaves later lines of its log alone", "[fit][checkpoint]") {
  const TemporaryFolder folder;
  TrainingLog log(folder / "log.jsonl");
  const auto train = [&](const char* name, std::int64_t epochs) {
    const Network network;
    GradientDescent descent({.learning_rate = 0.01});
    nn::fit(network, squared_error, descent, data_of(16),
            {.epochs = epochs,
             .batch = 8,
             .checkpoints = nn::FitCheckpoints{.folder = folder / name},
             .log = &log,
             .progress = nn::FitProgress::silent});
  };
  train("a", 2), train("b", 3);
  const std::int64_t size = log.size();
  train("a", 2), train("b", 3);
  CHECK(log.size() == size);
}

namespace {

struct Twins {
  Variable a{ones({4, 1})}, b{ones({4, 1})};
  void for_each_member(const auto& visit) { visit("w", a), visit("w", b); }
  Tensor operator()(const Tensor& x) const { return matmul(x, a) + matmul(x, b); }
};

}   // namespace

TEST_CASE("fit: variables with the same name cannot be saved", "[fit][errors]") {
  const Twins twins;
  GradientDescent descent({.learning_rate = 0.01});
  CHECK_THAT(message_of<ArgumentError>([&] {
               nn::fit(twins, squared_error, descent, data_of(16),
                       {.early_stopping = nn::EarlyStopping{.restore_best = true},
                        .progress = nn::FitProgress::silent});
             }),
             StartsWith("fit: two variables of the network have the name \"w\""));
}

}   // namespace fit_test
