// Two layers learn to read handwritten digits of 8×8 pixels: a network is a struct of layers, and fit trains
// it.
#include <iostream>

#include <tapedeck/nn.h>
#include <tapedeck/tapedeck.h>

#include "../common/example.h"
#include "../digits/data.h"

namespace td = tapedeck;
namespace nn = tapedeck::nn;

struct Network {
  td::random::Key key;
  nn::Dense hidden{64, 64, key.split(0)}, scores{64, 10, key.split(1)};

  td::Tensor operator()(const td::Tensor& pixels) const { return scores(td::relu(hidden(pixels))); }
};

int main() {
  const auto [train, test] = split(load_digits(example_data("digits.csv.gz")));
  const Network network{.key = {.seed = 1}};
  td::Adam adam({.learning_rate = 2e-3});
  nn::fit(network, td::sparse_softmax_cross_entropy, adam, td::Dataset({train.pixels, train.labels}),
          {.epochs = 20,
           .key = {.seed = 2},
           .validation = td::Dataset({test.pixels, test.labels}),
           .metrics = {nn::Accuracy()}});

  const td::Tensor answers = td::argmax(network(test.pixels));
  const double right = td::mean(td::astype(td::equal(answers, test.labels), td::DType::f32)).item();
  std::cout << "It reads " << 100 * right << " % of " << test.size()
            << " digits that it has not seen. The first ten:\n"
            << answers[{{0, 10}}] << "\n"
            << test.labels[{{0, 10}}] << " are right\n";
  return right > 0.95 ? 0 : 1;
}
