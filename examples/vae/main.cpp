// A variational autoencoder for the handwritten digits (Kingma and Welling 2014). The encoder maps each digit
// to a normal distribution over a plane, the decoder maps each point of the plane to a digit, and both are
// trained by samples of the lower bound of the likelihood. In the end the decoder draws a grid of points.
#include <algorithm>

#include <fmt/format.h>
#include <tapedeck/nn.h>
#include <tapedeck/tapedeck.h>

#include "../common/example.h"
#include "../digits/data.h"

namespace td = tapedeck;
namespace nn = tapedeck::nn;

namespace {

constexpr std::int64_t kInputs = 64, kUnits = 128, kLatent = 2, kBatch = 64, kFramed = 10;

struct Autoencoder {
  td::random::Key key;
  nn::Sequential encoder{nn::Dense(kInputs, kUnits, key.split(0)), td::tanh,
                         nn::Dense(kUnits, 2 * kLatent, key.split(1))};
  nn::Sequential decoder{nn::Dense(kLatent, kUnits, key.split(2)), td::tanh,
                         nn::Dense(kUnits, kUnits, key.split(3)), td::tanh,
                         nn::Dense(kUnits, kInputs, key.split(4))};
};

/// The two terms of the bound, in nats per digit: the cost of its pixels, given a point that is drawn from
/// the digit's distribution, and the cost of the point.
struct Cost {
  td::Tensor pixels, point;
};
Cost cost(const Autoencoder& network, const td::Tensor& pixels, td::random::Key key) {
  const std::vector<td::Tensor> code = td::split(network.encoder(pixels), 2, -1);
  const td::Tensor &mean = code[0], &log_variance = code[1];
  const td::Tensor point = mean + td::exp(0.5 * log_variance) * td::random::normal(mean.shape(), key);
  return {td::mean(td::sum(td::sigmoid_cross_entropy(pixels, network.decoder(point)), -1)),
          td::mean(td::sum(0.5 * (td::square(mean) + td::exp(log_variance) - 1 - log_variance), -1))};
}
double nats(const Cost& c) { return c.pixels.item() + c.point.item(); }

/// The cost of a digit by the mean darkness of each pixel, which the autoencoder has to beat.
double nats_of_means(const Digits& train, const Digits& test) {
  const td::Tensor mean = td::clip(td::mean(train.pixels, {0}), 1e-3, 1 - 1e-3);
  const td::Tensor logits = td::broadcast_to(td::log(mean / (1 - mean)), test.pixels.shape());
  return td::mean(td::sum(td::sigmoid_cross_entropy(test.pixels, logits), -1)).item();
}

/// The digits of n × n points of the plane, at quantiles of the normal distribution, as one framed image.
td::Tensor sheet(const Autoencoder& network, std::int64_t n) {
  const td::Tensor at = td::ndtri(td::linspace(0.04, 0.96, n));
  const td::Tensor points = td::stack(
      {td::tile(at, {n}), td::reshape(td::broadcast_to(td::expand_dims(at, 1), {n, n}), {n * n})}, 1);
  const td::Tensor digits = td::reshape(td::sigmoid(network.decoder(points)), {n, n, 8, 8});
  const td::Tensor framed = td::pad(digits, {0, 0, 1, 1}, {0, 0, 1, 1});
  return td::reshape(td::transpose(framed, {0, 2, 1, 3}), {kFramed * n, kFramed * n});
}

void example(Run& run) {
  const Split digits = split(load_digits(example_data("digits.csv.gz")));
  const Digits &train = digits.train, &test = digits.test;   // clang 14 cannot capture bindings
  const Autoencoder network{{.seed = 1}};
  const td::random::Key key{.seed = 2};
  const int epochs = run.quick ? 60 : 300;
  td::Adam adam({.learning_rate = 2e-3});
  const auto bound = [](const Autoencoder& net, const td::Batch& batch, const nn::Run& call) {
    const Cost c = cost(net, batch[0], call.key);
    return c.pixels + c.point;
  };
  if (run.only_times([&] {
        adam.minimize([&] { return bound(network, {train.pixels[{{0, kBatch}}]}, {.key = key}); });
      }))
    return;

  fmt::print("{}", nn::summary(network.decoder, td::zeros({1, kLatent})));
  Curve trained{.colour = kPaleBlue, .name = "training"}, tested{.name = "test"};
  const auto show = [&](nn::EpochReport& report) {
    const double epoch = static_cast<double>(report.epoch + 1);
    const Cost c = cost(network, test.pixels, {.seed = 3});
    trained.x.push_back(epoch), trained.y.push_back(report["loss"]);
    tested.x.push_back(epoch), tested.y.push_back(nats(c));
    if (report.epoch % (epochs / 10) == 0 || report.epoch == epochs - 1)
      fmt::print("epoch {:>3}: {:.2f} nats of a digit of the test, {:.2f} of them for its point\n", epoch,
                 nats(c), c.point.item());
  };
  nn::fit(
      network, bound, adam, td::Dataset({train.pixels}),
      {.epochs = epochs, .batch = kBatch, .key = key, .on_epoch = show, .progress = nn::FitProgress::silent});
  const double means = nats_of_means(train, test), least = run.quick ? 1 : 2.5;
  fmt::print("mean pixels: {:.2f} nats, the autoencoder: {:.2f}\n", means, tested.y.back());
  run.claim(tested.y.back() < means - least,
            fmt::format("a digit of the test costs {} nats fewer than by mean pixels", least));

  constexpr std::int64_t kSide = 10;
  run.picture.field({.width = 460, .height = 440}, "Digits of the plane", sheet(network, kSide).to_vector(),
                    kFramed * kSide, 0, 1);
  run.picture.chart({.x = 470, .width = 420, .height = 440}, "Nats of a digit:", {.label = "epoch"},
                    {.label = "nats"}, std::vector{trained, tested});
}

}   // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, "a variational autoencoder of digits", example);
}
