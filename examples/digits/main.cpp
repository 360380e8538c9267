// Learns to classify handwritten digits: loads them, trains networks with a gradient tape and Adam, and tests
// them on digits that were not used for training. network.h has the networks; train() below is the complete
// training loop, for one process or many.
#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <tapedeck/debug.h>

#include "../common/example.h"
#include "data.h"
#include "graph.h"
#include "network.h"
#include "options.h"
#include "plot.h"
#include "progress.h"
#include "report.h"
#include "tapedeck/compile.h"
#include "tapedeck/safetensors.h"
#include "tapedeck/training_log.h"
#include "team.h"

namespace td = tapedeck;

namespace {

double accuracy(const td::Tensor& labels, const td::Tensor& predicted) {
  return td::mean(td::astype(td::equal(labels, predicted), td::DType::f64)).item();
}

/// The log of a network's training, if wanted: settings, then a line for each batch, and a line for each
/// epoch with the results on the test digits.
class Journal {
 public:
  Journal(bool wanted, const Options& options, const Network& network, const Digits& test)
      : network_(network), test_(test) {
    if (!wanted) return;
    log_.emplace(options.log + "/" + network.name() + ".jsonl");
    log_->write({{"model", network.name()},
                 {"optimizer", "Adam"},
                 {"batch", options.batch},
                 {"seed", std::to_string(options.seed)},
                 {"replicas", options.replicas}});
  }

  void add(double loss, double accuracy) {
    if (log_) log_->write({{"kind", "train"}, {"step", ++step_}, {"loss", loss}, {"accuracy", accuracy}});
  }
  void end_epoch() {
    if (!log_) return;
    const td::Tensor scores = network_(test_.pixels);
    const td::Tensor loss = td::mean(td::sparse_softmax_cross_entropy(test_.labels, scores));
    log_->write({{"kind", "test"},
                 {"step", step_},
                 {"loss", loss.item()},
                 {"accuracy", accuracy(test_.labels, td::argmax(scores))}});
  }

 private:
  const Network& network_;
  const Digits& test_;
  std::optional<td::TrainingLog> log_;
  std::int64_t step_ = 0;
};

struct Training {
  std::vector<double> losses;   // by batch
  std::string tape;             // of the first step, for Graphviz
};

Training train(const Network& network, const Split& digits, td::random::Key key, const Options& options,
               const Team& team) {
  td::Adam adam({.learning_rate = 2e-3});
  Progress progress(network.name(), options.epochs, digits.train.size());
  Journal journal(!options.log.empty() && team.speaks(), options, network, digits.test);
  Training result;
  // Each replica divides the sum of its losses by the size of the whole batch: the total is the mean, even if
  // the parts differ in size.
  const auto step = [&](const td::Tensor& pixels, const td::Tensor& labels, std::int64_t batch, bool draws) {
    td::GradientTape tape;
    const td::Tensor scores = network(pixels);
    const td::Tensor loss = td::sum(td::sparse_softmax_cross_entropy(labels, scores)) / batch;
    if (draws) result.tape = td::to_dot(tape);
    adam.minimize(loss, &tape, {.variables = network.weights()});
    const td::Tensor right =
        td::sum(td::astype(td::equal(labels, td::argmax(scores)), td::DType::f32)) / batch;
    return td::stack({loss, right});
  };
  const auto recorded = td::compile(step, {.name = network.name() + " step"});
  team.run([&](td::Replica replica) {
    const bool reports = replica.index == 0;
    for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
      const td::Tensor order =
          td::random::permutation(digits.train.size(), key.split(static_cast<std::uint64_t>(epoch)));
      for (std::int64_t first = 0; first < digits.train.size(); first += options.batch) {
        const std::int64_t size = std::min(options.batch, digits.train.size() - first);
        const std::int64_t begin = size * replica.index / replica.count,
                           end = size * (replica.index + 1) / replica.count;
        const Digits part = digits.train.at(td::slice(order, {first + begin}, {end - begin}));
        const bool draws = reports && result.tape.empty();
        const td::Tensor whole =
            td::sum_over_replicas(options.recorded ? recorded(part.pixels, part.labels, size, draws)
                                                   : step(part.pixels, part.labels, size, draws));
        if (!reports) continue;
        result.losses.push_back(whole.at({0}));
        progress.add(size, result.losses.back(), whole.at({1}));
        journal.add(result.losses.back(), whole.at({1}));
      }
      if (reports) progress.end_epoch(), journal.end_epoch();
    }
    for (const td::Variable& w : network.weights())
      check_same_bits(w, replica);
  });
  return result;
}

/// Returns the fraction of correct answers.
double test(const Network& network, const Digits& digits) {
  const td::Tensor predicted = td::argmax(network(digits.pixels));
  fmt::print("\n{}\n", network.name());
  print_confusion(digits.labels, predicted);
  print_digits(digits, predicted, {0, 1, 2, 3});

  std::vector<std::int64_t> mistakes;
  for (std::int64_t i = 0; i < digits.size() && mistakes.size() < 4; ++i)
    if (predicted.at<std::int64_t>({i}) != digits.labels.at<std::int64_t>({i})) mistakes.push_back(i);
  if (!mistakes.empty()) print_digits(digits, predicted, mistakes);
  return accuracy(digits.labels, predicted);
}

td::NamedTensors weights_of(const std::vector<std::unique_ptr<Network>>& networks) {
  td::NamedTensors weights;
  for (const auto& network : networks)
    for (const td::Variable& w : network->weights())
      weights.emplace(network->name() + " " + w.name(), w.value());
  return weights;
}

void run(const Options& options) {
  td::set_num_threads(options.threads);
  const Team team(options.replicas);
  const Split digits = split(load_digits(options.data));

  const td::random::Key key{.seed = options.seed};
  std::vector<std::unique_ptr<Network>> networks;
  if (options.mlp) networks.push_back(std::make_unique<Mlp>(key.split(0)));
  if (options.cnn) networks.push_back(std::make_unique<Cnn>(key.split(2)));
  std::optional<Output> plot, tape;
  team.run([&](td::Replica replica) {
    if (replica.index == 0) plot.emplace(options.plot), tape.emplace(options.tape);
  });   // if this throws, all replicas end
  if (!team.speaks()) {
    for (const auto& network : networks)
      train(*network, digits, key.split(1), options, team);
    return;
  }
  fmt::print("{} digits to learn from, {} to be tested on\n", digits.train.size(), digits.test.size());

  std::vector<Losses> curves;
  std::string last_tape;
  for (const auto& network : networks) {
    Training result = train(*network, digits, key.split(1), options, team);
    curves.push_back({network->name(), std::move(result.losses)});
    last_tape = std::move(result.tape);
  }
  if (team.count() > 1) fmt::print("{} replicas, with the same bits in all weights\n", team.count());
  if (!options.weights.empty()) td::save_safetensors(options.weights, weights_of(networks));
  write_loss_curves(plot->stream(), curves, options.epochs);
  plot->finish();
  fmt::print("loss curves: {}\n", options.plot);
  tape->stream() << last_tape;
  tape->finish();
  const std::string drawn = draw_graph(options.tape);
  fmt::print("tape of a step: {}{}{}\n", options.tape, drawn.empty() ? "" : " and ", drawn);

  std::string summary = "\ntest accuracy:";
  for (const auto& network : networks)
    summary += fmt::format(" {} {:.3f}", network->name(), test(*network, digits.test));
  fmt::print("{}\n", summary);
}

}   // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse_options(argc, argv);
    if (options.help)
      fmt::print("{}", kHelp);
    else
      run(options);
    return 0;
  } catch (const WrongOption& e) {
    fmt::print(stderr, "digits: {}; see --help\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "digits: {}\n", e.what());
    return 1;
  }
}
