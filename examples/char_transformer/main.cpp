// A transformer that writes text, character by character: a decoder with causal attention, trained to predict
// the next character of this repository's guides. Sampling keeps the keys and values of earlier characters,
// so that a new character costs one query, not a pass over the whole text.
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

constexpr std::int64_t kWidth = 64, kHeads = 4, kLength = 64, kBatch = 16;

struct Block {
  td::random::Key key;
  nn::LayerNorm before_attention{kWidth}, before_dense{kWidth};
  nn::MultiHeadAttention attention{kWidth, kHeads, key.split(0), {.causal = true}};
  nn::Dense up{kWidth, 4 * kWidth, key.split(1)}, down{4 * kWidth, kWidth, key.split(2)};

  td::Tensor operator()(const td::Tensor& x, nn::AttentionCache* cache) const {
    const td::Tensor y = x + attention(before_attention(x), {.cache = cache});
    return y + down(td::relu(up(before_dense(y))));
  }
};
Block block(td::random::Key key) { return {key}; }

struct Transformer {
  td::random::Key key;
  std::int64_t characters;
  nn::Embedding table{characters, kWidth, key.split(0)}, places{kLength, kWidth, key.split(1)};
  std::array<Block, 2> blocks = {block(key.split(2)), block(key.split(3))};
  nn::LayerNorm norm{kWidth};
  nn::Dense head{kWidth, characters, key.split(4)};

  /// Logits of the next characters. `caches`, one for each block, hold the characters before ids; ids are
  /// added.
  td::Tensor operator()(const td::Tensor& ids, std::vector<nn::AttentionCache>* caches = nullptr) const {
    const std::int64_t begin = caches ? caches->front().length() : 0;
    td::Tensor x = table(ids) + places(begin + td::arange(ids.shape()[1]));
    for (std::size_t i = 0; i < blocks.size(); ++i)
      x = blocks[i](x, caches ? &(*caches)[i] : nullptr);
    return head(norm(x));
  }
};

/// Mean bits of the characters of [rows, length + 1], each given the previous ones.
td::Tensor bits(const Transformer& network, const td::Tensor& rows) {
  const td::Tensor before = rows[{{}, {{}, -1}}], next = rows[{{}, {1, {}}}];
  return td::mean(td::sparse_softmax_cross_entropy(next, network(before))) / std::numbers::ln2;
}

/// Continues a text up to kLength characters.
std::string sample(const Transformer& network, const Text& text, const std::string& start,
                   td::random::Key key) {
  std::vector<nn::AttentionCache> caches(network.blocks.size());
  std::vector<std::int64_t> ids = text.ids(start);
  td::Tensor logits = network(td::expand_dims(td::tensor(ids), 0), &caches);
  while (std::ssize(ids) < kLength) {
    const td::Tensor drawn = td::random::categorical(logits[{{}, -1}], 1, key.split(ids.size()));
    ids.push_back(drawn.item<std::int64_t>());
    logits = network(drawn, &caches);
  }
  return text.words(ids);
}

void check_causality(Run& run, const Transformer& network, const td::Tensor& rows) {
  std::vector<nn::AttentionCache> caches(network.blocks.size());
  const td::Tensor whole = network(rows);
  double worst = 0;
  for (std::int64_t i = 0; i < rows.shape()[1]; ++i) {
    const td::Tensor one = network(rows[{{}, {i, i + 1}}], &caches);
    worst = std::max(worst, td::max(td::abs(one - whole[{{}, {i, i + 1}}])).item());
  }
  run.claim(worst < 1e-4, "one character at a time, with a cache, the logits are those of the whole text");
}

void example(Run& run) {
  const Text text;
  const Transformer network{{.seed = 1}, text.characters()};
  const int steps = run.quick ? 150 : 2000;
  td::Adam adam({.learning_rate = td::schedule::cosine({.initial = 4e-3, .steps = steps, .end = 0.05})});
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
  check_causality(run, network, text.test(2, 24));
  for (std::uint64_t i = 0; i < 3; ++i)
    fmt::print("| {}\n", sample(network, text, "The ", {.seed = i}));

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
  return run_example(argc, argv, "a transformer that writes text by characters", example);
}
