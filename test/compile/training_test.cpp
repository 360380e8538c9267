// Networks trained as the examples train theirs, with the step recorded: the bits of all losses and variables
// are those of eager steps.
#include <catch2/catch.hpp>
#include <numbers>

#include "closeness.h"
#include "tapedeck/compile.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/gradient_transform.h"
#include "tapedeck/map.h"
#include "tapedeck/nn.h"
#include "tapedeck/tapedeck.h"

namespace compile_training_test {

using namespace tapedeck;

namespace {

constexpr std::uint64_t kSteps = 50;

template <class Network, class Loss, class Batch>
std::vector<Tensor> train(const Network& start, const Loss& loss, const Batch& batch, bool recorded) {
  const Network network = nn::copy(start);
  Adam adam({.learning_rate = schedule::cosine({.initial = 8e-3, .steps = kSteps, .end = 0.05})});
  adam.add_transform(transforms::clip_global_norm(1));
  const auto step = [&](const std::vector<Tensor>& x, random::Key key) {
    return adam.minimize([&] { return loss(network, x, key); });
  };
  const auto replayed = compile(step);
  std::vector<Tensor> all;
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    const random::Key key = random::Key{.seed = 1}.split(i);
    const std::vector<Tensor> x = batch(key.split(0));
    all.push_back(recorded ? replayed(x, key.split(1)) : step(x, key.split(1)));
  }
  for (const NamedVariable& v : nn::variables(network))
    all.push_back(v.variable.value());
  if (recorded) CHECK(replayed.programs().at(0).calls == kSteps - 1);
  return all;
}

/// Also that the training changes something, and does not end in NaN, whose bits would agree.
template <class Network, class Loss, class Batch>
void check_training(const Network& network, const Loss& loss, const Batch& batch) {
  const auto eager = train(network, loss, batch, false), replayed = train(network, loss, batch, true);
  CHECK(eager[kSteps - 1].item() < eager[0].item());
  REQUIRE(eager.size() == replayed.size());
  for (std::size_t i = 0; i < eager.size(); ++i) {
    INFO((i < kSteps ? "loss " : "variable ") << i % kSteps);
    CHECK(same_bits(eager[i], replayed[i]));
  }
}

Tensor ids(random::Key key, const Shape& shape, double below) {
  return astype(random::uniform(shape, key, 0, below), DType::i64);
}

struct Images {
  random::Key key;
  nn::Conv2d conv{1, 6, {3, 3}, key.split(0), {.padding = Padding::same}};
  nn::BatchNorm norm{6};
  nn::Dense dense{96, 20, key.split(1)}, head{20, 4, key.split(2)};

  Tensor operator()(const Tensor& x, nn::Run run) const {
    const Tensor y = max_pool2d(relu(norm(conv(x), run)), {2, 2});
    return head(nn::Dropout{0.3}(gelu(dense(reshape(y, {-1, 96}))), run));
  }
};

struct Text {
  random::Key key;
  nn::Embedding table{11, 8, key.split(0)};
  nn::Lstm lstm{8, 12, key.split(1)};
  nn::Gru gru{12, 10, key.split(2)};
  nn::Dense head{10, 11, key.split(3)};

  Tensor operator()(const Tensor& x) const { return head(gru(lstm(table(x)))); }
};

struct Transformer {
  random::Key key;
  nn::Embedding table{11, 16, key.split(0)}, places{9, 16, key.split(1)};
  nn::LayerNorm before{16}, after{16};
  nn::MultiHeadAttention attention{16, 4, key.split(2), {.causal = true, .dropout = 0.1}};
  nn::Dense up{16, 32, key.split(3)}, down{32, 16, key.split(4)}, head{16, 11, key.split(5)};

  Tensor operator()(const Tensor& x, nn::Run run) const {
    Tensor y = table(x) + places(arange(x.shape()[1]));
    y = y + attention(before(y), {.run = run});
    return head(y + down(relu(up(after(y)))));
  }
};

struct Autoencoder {
  random::Key key;
  nn::Sequential encoder{nn::Dense(16, 24, key.split(0)), tapedeck::tanh, nn::Dense(24, 4, key.split(1))};
  nn::Sequential decoder{nn::Dense(2, 24, key.split(2)), tapedeck::tanh, nn::Dense(24, 16, key.split(3))};
};

struct Field {
  random::Key key;
  nn::Sequential network{nn::Dense(2, 12, key.split(0)), tapedeck::tanh, nn::Dense(12, 12, key.split(1)),
                         tapedeck::tanh, nn::Dense(12, 1, key.split(2))};

  Tensor operator()(const Tensor& x, const Tensor& t) const {
    return t * (1 - square(x)) * network(concat({x, t}, 1)) - sin(std::numbers::pi * x);
  }
};

struct RightHandSide {
  random::Key key;
  nn::Sequential network{nn::Dense(2, 12, key.split(0)), tapedeck::tanh, nn::Dense(12, 2, key.split(1))};
};

Tensor next_token_loss(const Tensor& logits, const Tensor& rows) {
  return mean(sparse_softmax_cross_entropy(rows[{{}, {1, {}}}], logits));
}

}   // namespace

TEST_CASE("images: a training step is recorded", "[recorded]") {
  const Tensor patterns = random::normal({4, 8, 8, 1}, {.seed = 9});
  check_training(
      Images{{.seed = 1}},
      [](const Images& network, const std::vector<Tensor>& x, random::Key key) {
        return mean(sparse_softmax_cross_entropy(x[1], network(x[0], {.training = true, .key = key})));
      },
      [&](random::Key key) {
        const Tensor labels = ids(key.split(0), {16}, 4);
        return std::vector{gather(patterns, labels) + 0.3 * random::normal({16, 8, 8, 1}, key.split(1)),
                           labels};
      });
}

TEST_CASE("recurrent networks and attention: a training step is recorded", "[recorded]") {
  const auto rows = [](random::Key key) {   // each is one up from the one before it
    return std::vector{floor_mod(ids(key, {6, 1}, 11) + arange(10), 11)};
  };
  check_training(
      Text{{.seed = 1}},
      [](const Text& network, const std::vector<Tensor>& x, random::Key) {
        return next_token_loss(network(x[0][{{}, {{}, -1}}]), x[0]);
      },
      rows);
  check_training(
      Transformer{{.seed = 1}},
      [](const Transformer& network, const std::vector<Tensor>& x, random::Key key) {
        return next_token_loss(network(x[0][{{}, {{}, -1}}], {.training = true, .key = key}), x[0]);
      },
      rows);
}

TEST_CASE("an autoencoder: a training step is recorded", "[recorded]") {
  const Tensor patterns = random::uniform({3, 16}, {.seed = 9});
  check_training(
      Autoencoder{{.seed = 1}},
      [](const Autoencoder& network, const std::vector<Tensor>& x, random::Key key) {
        const std::vector<Tensor> code = split(network.encoder(x[0]), 2, -1);
        const Tensor point = code[0] + exp(0.5 * code[1]) * random::normal(code[0].shape(), key);
        return mean(sum(sigmoid_cross_entropy(x[0], network.decoder(point)), -1)) +
               mean(sum(0.5 * (square(code[0]) + exp(code[1]) - 1 - code[1]), -1));
      },
      [&](random::Key key) { return std::vector{gather(patterns, ids(key, {32}, 3))}; });
}

TEST_CASE("differential equations: a training step is recorded", "[recorded]") {
  check_training(
      Field{{.seed = 1}},
      [](const Field& solution, const std::vector<Tensor>& at, random::Key) {
        const Tensor x = identity(at[0]), t = identity(at[1]);
        const ForwardAccumulator along_x(x, ones_like(x));
        GradientTape tape;
        tape.watch(x), tape.watch(t);
        const Tensor u = solution(x, t);
        const auto [by_x, by_t] = tape.gradient(u, x, t);
        const Tensor u_x = by_x.dense(), u_xx = along_x.jvp(u_x);
        return mean(square(by_t.dense() + u * u_x - 0.02 * u_xx));
      },
      [](random::Key key) {
        return std::vector{random::uniform({64, 1}, key.split(0), -1, 1),
                           random::uniform({64, 1}, key.split(1))};
      });
  check_training(
      RightHandSide{{.seed = 1}},
      [](const RightHandSide& f, const std::vector<Tensor>& x, random::Key) {
        Tensor y = x[0];
        for (int i = 0; i < 3; ++i) {   // Runge and Kutta's second order
          const Tensor middle = y + 0.05 * f.network(y);
          y = y + 0.1 * f.network(middle);
        }
        return mean(square(y - map([](auto v) { return v * exp(-0.3 * v * v); }, x[0])));
      },
      [](random::Key key) {
        return std::vector{random::normal({32, 2}, key)};
      });
}

}   // namespace compile_training_test
