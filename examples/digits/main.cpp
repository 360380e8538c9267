// Learns to read handwritten digits: loads them, trains a network with a gradient tape and Adam, and tests it on digits
// that it has not seen. network.h has the network; train() below is the whole of the learning.
#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "data.h"
#include "network.h"
#include "options.h"
#include "plot.h"
#include "progress.h"
#include "report.h"

namespace td = tapedeck;

namespace {

td::Tensor predict(const Mlp& network, const td::Tensor& pixels) { return td::argmax(network(pixels)); }

double accuracy(const td::Tensor& labels, const td::Tensor& predicted) { return td::mean(td::astype(td::equal(labels, predicted), td::DType::f64)).item(); }

/// Returns the loss of every batch.
std::vector<double> train(const Mlp& network, const Digits& digits, td::random::Key key, const Options& options) {
  td::Adam adam({.learning_rate = 2e-3});
  Progress progress(options.epochs, digits.size());
  std::vector<double> losses;
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const td::Tensor order = td::random::permutation(digits.size(), key.split(static_cast<std::uint64_t>(epoch)));
    for (std::int64_t first = 0; first < digits.size(); first += options.batch) {
      const Digits batch = digits.at(td::slice(order, {first}, {std::min(options.batch, digits.size() - first)}));

      td::GradientTape tape;
      const td::Tensor scores = network(batch.pixels);
      const td::Tensor loss = td::mean(td::sparse_softmax_cross_entropy(batch.labels, scores));
      adam.apply_gradients(tape.gradient(loss, network.weights()), network.weights());

      losses.push_back(loss.item());
      progress.add(batch.size(), losses.back(), accuracy(batch.labels, td::argmax(scores)));
    }
    progress.end_epoch();
  }
  return losses;
}

void test(const Mlp& network, const Digits& digits) {
  const td::Tensor predicted = predict(network, digits.pixels);
  print_confusion(digits.labels, predicted);
  print_digits(digits, predicted, {0, 1, 2, 3});

  std::vector<std::int64_t> mistakes;
  for (std::int64_t i = 0; i < digits.size() && mistakes.size() < 4; ++i)
    if (predicted.at<std::int64_t>({i}) != digits.labels.at<std::int64_t>({i})) mistakes.push_back(i);
  if (!mistakes.empty()) print_digits(digits, predicted, mistakes);

  fmt::print("\ntest accuracy: mlp {:.3f}\n", accuracy(digits.labels, predicted));
}

void run(const Options& options) {
  td::set_num_threads(options.threads);
  const Split digits = split(load_digits(options.data));
  std::ofstream plot(options.plot);
  if (!plot) throw td::FileError(fmt::format("cannot write {}", options.plot));

  const td::random::Key key{.seed = options.seed};
  const Mlp network(key.split(0));
  fmt::print("{} digits to learn from, {} to be tested on\n", digits.train.size(), digits.test.size());
  const std::vector<double> losses = train(network, digits.train, key.split(1), options);

  write_loss_curve(plot, losses, options.epochs);
  if (!plot.flush()) throw td::FileError(fmt::format("cannot write {}", options.plot));
  fmt::print("loss curve: {}\n", options.plot);
  test(network, digits.test);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse_options(argc, argv);
    if (options.help) fmt::print("{}", kHelp);
    else run(options);
    return 0;
  } catch (const WrongOption& e) {
    fmt::print(stderr, "digits: {}; see --help\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "digits: {}\n", e.what());
    return 1;
  }
}
