// An LSTM that writes text, character by character, trained to predict the next character of this
// repository's guides. It remembers earlier characters only by its state, so the text can be of any length.
#include <numbers>

#include <fmt/format.h>
#include <tapedeck/gradient_transform.h>
#include <tapedeck/nn.h>
#include <tapedeck/tapedeck.h>

#include "../common/example.h"
#include "../common/text.h"

namespace td = tapedeck;
namespace nn = tapedeck::nn;

namespace {

constexpr std::int64_t kWidth = 32, kUnits = 192, kLength = 64, kBatch = 16;

struct Network {
  td::random::Key key;
  std::int64_t characters;
  nn::Embedding table{characters, kWidth, key.split(0)};
  nn::Lstm lstm{kWidth, kUnits, key.split(1)};
  nn::Dense head{kUnits, characters, key.split(2)};

  /// Logits of the next characters of ids [batch, time]. Continues from the state, and updates it.
  td::Tensor operator()(const td::Tensor& ids, td::LstmState& state) const {
    const nn::LstmSequence y = lstm(table(ids), {}, state);
    state = y.state;
    return head(y.outputs);
  }
  td::Tensor operator()(const td::Tensor& ids) const {
    td::LstmState state;
    return (*this)(ids, state);
  }
};

/// Mean bits of the characters of [rows, length + 1], each given the previous ones.
td::Tensor bits(const Network& network, const td::Tensor& rows) {
  const td::Tensor before = rows[{{}, {{}, -1}}], next = rows[{{}, {1, {}}}];
  return td::mean(td::sparse_softmax_cross_entropy(next, network(before))) / std::numbers::ln2;
}

/// Continues a text by `more` characters.
std::string sample(const Network& network, const Text& text, const std::string& start, int more,
                   td::random::Key key) {
  td::LstmState state;
  std::vector<std::int64_t> ids = text.ids(start);
  td::Tensor logits = network(td::expand_dims(td::tensor(ids), 0), state);
  for (int i = 0; i < more; ++i) {
    const td::Tensor drawn = td::random::categorical(logits[{{}, -1}], 1, key.split(ids.size()));
    ids.push_back(drawn.item<std::int64_t>());
    logits = network(drawn, state);
  }
  return text.words(ids);
}

void check_state(Run& run, const Network& network, const td::Tensor& rows) {
  td::LstmState state;
  std::vector<td::Tensor> pieces;
  for (const td::Tensor& piece : td::split(rows, 4, 1))
    pieces.push_back(network(piece, state));
  run.claim(td::max(td::abs(td::concat(pieces, 1) - network(rows))).item() < 1e-4,
            "in pieces, with the state between them, the logits are those of the whole text");
}

void example(Run& run) {
  const Text text;
  const Network network{{.seed = 1}, text.characters()};
  const int steps = run.quick ? 150 : 1200;
  td::Adam adam({.learning_rate = td::schedule::cosine({.initial = 8e-3, .steps = steps, .end = 0.05})});
  adam.add_transform(td::transforms::clip_global_norm(1));
  const auto step = [&](std::uint64_t i) {
    const td::Tensor rows = text.train(kBatch, kLength + 1, td::random::Key{.seed = 2}.split(i));
    return adam.minimize([&] { return bits(network, rows); }).item();
  };
  if (run.only_times([&] { step(0); })) return;

  fmt::print("{} characters, {} different ones\n{}", text.size(), text.characters(),
             nn::summary(network, text.test(1, kLength)));
  const td::Tensor test = text.test(32, kLength + 1);
  Curve trained{.colour = kPaleBlue, .name = "training", .width = 1}, tested{.name = "test"};
  for (int i = 0; i < steps; ++i) {
    trained.x.push_back(i), trained.y.push_back(step(static_cast<std::uint64_t>(i)));
    if (i % (steps / 15) == 0 || i == steps - 1) {
      tested.x.push_back(i), tested.y.push_back(bits(network, test).item());
      fmt::print("step {:>4}: {:.2f} bits of a character of the test\n", i, tested.y.back());
    }
  }
  const double alone = text.bits_alone(), pairs = text.bits_of_pairs(), last = tested.y.back();
  fmt::print("frequencies: {:.2f} bits, of pairs: {:.2f}, the network: {:.2f}\n", alone, pairs, last);
  run.claim(last < (run.quick ? alone - 0.5 : pairs - 1),
            run.quick ? "it predicts better than frequencies of characters by half a bit"
                      : "it predicts better than frequencies of pairs of characters by a bit");
  check_state(run, network, text.test(2, 24));
  fmt::print("{}\n", sample(network, text, "The ", 300, {.seed = 1}));

  const std::vector<double> ends = {0, static_cast<double>(steps)};
  run.picture.chart(
      {}, "Bits of a character:", {.label = "step"}, {.label = "bits", .from = 0},
      std::vector<Curve>{trained,
                         tested,
                         {.x = ends, .y = {pairs, pairs}, .colour = kOrange, .name = "pairs"},
                         {.x = ends, .y = {alone, alone}, .colour = kPaleOrange, .name = "frequencies"}});
}

}   // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, "an LSTM that writes text by characters", example);
}
