// Layers and their gradients, compared with torch 1.13 for the same variables; test/nn/torch_layers.py
// computes the expected values.
#include <catch2/catch.hpp>
#include <cmath>

#include "closeness.h"
#include "data_folder.h"
#include "tapedeck/nn.h"
#include "tapedeck/safetensors.h"
#include "tapedeck/tapedeck.h"
#include "warnings.h"

namespace layers_test {

using namespace tapedeck;

namespace {

constexpr random::Key kKey{.seed = 1};
const nn::LayerOptions kF64{.dtype = DType::f64};

const Tensor& value_of(const std::string& name, const std::string& what) {
  static const NamedTensors file = load_safetensors((test::data_folder() / "layers.safetensors").string());
  const auto at = file.find(name + ':' + what);
  INFO(name << ':' << what);
  REQUIRE(at != file.end());
  return at->second;
}

// Gives the layer the variables of a case, calls it, and compares results and gradients.
template <class L, class F> void check(const std::string& name, const L& layer, const F& call) {
  INFO(name);
  const std::vector<NamedVariable> all = nn::variables(layer);
  for (const auto& [path, v] : all)
    v.assign(value_of(name, "var/" + path));
  const Tensor x = value_of(name, "x");
  GradientTape tape({.persistent = true});
  if (is_floating(x.dtype())) tape.watch(x);
  const Tensor y = call(x);
  tape.stop();
  CHECK(worst(y, value_of(name, "y")) < 1e-12);
  const GradientOptions from{.output_gradients = {value_of(name, "dy")}};
  if (is_floating(x.dtype()))
    CHECK(worst(tape.gradient({y}, {x}, from)[0].dense(), value_of(name, "dx")) < 1e-12);
  for (const auto& [path, v] : all) {
    if (!v.trainable()) continue;
    INFO(path);
    CHECK(worst(tape.gradient({y}, {v}, from)[0].dense(), value_of(name, "grad/" + path)) < 1e-12);
  }
}
template <class L> void check(const std::string& name, const L& layer) {
  check(name, layer, [&](const Tensor& x) -> Tensor { return layer(x); });
}

}   // namespace

TEST_CASE("dense layers and embeddings agree with torch") {
  check("dense", nn::Dense(4, 5, kKey, kF64));
  check("embedding", nn::Embedding(6, 4, kKey, kF64));
  const nn::Embedding table(6, 4, kKey);
  GradientTape tape;
  const Tensor y = table(tensor({1, 5}, DType::i64));
  CHECK(tape.gradient(y, table.table).slices() != nullptr);
}

TEST_CASE("convolutional layers agree with torch") {
  check("conv1d", nn::Conv1d(4, 6, 3, kKey,
                             {.strides = 2, .dilation = 2, .padding = 1, .groups = 2, .dtype = DType::f64}));
  check("conv2d", nn::Conv2d(4, 6, {3, 2}, kKey,
                             {.strides = 2, .dilation = 2, .padding = 1, .groups = 2, .dtype = DType::f64}));
  check("conv3d", nn::Conv3d(4, 6, {3, 2, 3}, kKey,
                             {.strides = 2, .dilation = 2, .padding = 1, .groups = 2, .dtype = DType::f64}));
  check("conv1d_transpose",
        nn::Conv1dTranspose(4, 6, 3, kKey, {.strides = 2, .padding = 1, .groups = 2, .dtype = DType::f64}));
  check("conv2d_transpose",
        nn::Conv2dTranspose(4, 6, {3, 2}, kKey,
                            {.strides = 2, .padding = 1, .groups = 2, .dtype = DType::f64}));
  check("conv3d_transpose",
        nn::Conv3dTranspose(4, 6, {3, 2, 3}, kKey,
                            {.strides = 2, .padding = 1, .groups = 2, .dtype = DType::f64}));
}

TEST_CASE("convolutional layers take channels first") {
  const nn::Conv2d last(2, 3, 3, kKey, {.padding = Padding::same});
  nn::Conv2d first = last;   // shares the variables
  first.window.layout = Layout::nchw;
  last.bias->assign(tensor({1.0, 2.0, 3.0}, DType::f32));
  const Tensor x = random::normal({2, 5, 4, 2}, {.seed = 3});
  CHECK(worst(transpose(first(transpose(x, {0, 3, 1, 2})), {0, 2, 3, 1}), last(x)) < 1e-6);

  const nn::Conv1dTranspose rows(2, 3, 3, kKey, {.strides = 2});
  nn::Conv1dTranspose columns = rows;
  columns.window.layout = Layout::nchw;
  const Tensor s = random::normal({2, 5, 2}, {.seed = 4});
  CHECK(worst(transpose(columns(transpose(s, {0, 2, 1})), {0, 2, 1}), rows(s)) < 1e-6);
}

TEST_CASE("normalizing layers of halves square in f32", "[layers]") {
  const Tensor x = tensor({{{300.0, -300.0, 600.0, 0.0}, {1000.0, 30000.0, -30000.0, 500.0}}});
  for (const DType dtype : {DType::f16, DType::bf16}) {
    CAPTURE(name_of(dtype));
    const Tensor half = astype(x, dtype);
    const auto close = [&](const Tensor& y, const Tensor& wanted) {
      CHECK(y.dtype() == dtype);
      CHECK(worst(astype(y, DType::f32), wanted) < (dtype == DType::f16 ? 0x1p-10 : 0x1p-7));
    };
    close(nn::RMSNorm(4, {.dtype = dtype})(half), nn::RMSNorm(4)(astype(half, DType::f32)));
    close(nn::GroupNorm(2, 4, {.dtype = dtype})(half), nn::GroupNorm(2, 4)(astype(half, DType::f32)));
    close(nn::LayerNorm(4, {.dtype = dtype})(half), nn::LayerNorm(4)(astype(half, DType::f32)));
  }
}

TEST_CASE("BatchNorm of halves keeps the variance of f32", "[layers]") {
  const Tensor x = tensor({{1000.0, 1.0}, {-1000.0, 2.0}, {500.0, 4.0}});
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const nn::BatchNorm half(2, {.dtype = dtype}), wide(2);
    const Tensor y = half(astype(x, dtype), {.training = true}),
                 wanted = wide(astype(astype(x, dtype), DType::f32), {.training = true});
    CHECK(y.dtype() == dtype);
    CHECK(worst(astype(y, DType::f32), wanted) < (dtype == DType::f16 ? 0x1p-10 : 0x1p-7));
    CHECK(same_bits(half.variance, wide.variance));
    CHECK(same_bits(half.mean, wide.mean));
  }
}

TEST_CASE("attention of halves with a mask of numbers agrees with f32", "[layers]") {
  const Tensor q = random::normal({3, 4}, {.seed = 1}) * 300.0;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor half = astype(q, dtype), wide = astype(half, DType::f32);
    const Tensor y = nn::attention(half, half, half, {.mask = zeros({3, 3}, dtype)});
    CHECK(same_bits(y, astype(nn::attention(wide, wide, wide, {.mask = zeros({3, 3})}), dtype)));
  }
}

TEST_CASE("layers accept an empty batch", "[layers]") {
  CHECK(nn::GroupNorm(2, 4)(zeros({0, 3, 4})).shape() == Shape{0, 3, 4});
  CHECK(nn::RMSNorm(4)(zeros({0, 4})).shape() == Shape{0, 4});
  CHECK(nn::BatchNorm(4)(zeros({0, 4})).shape() == Shape{0, 4});
}

TEST_CASE("a query of halves that may attend to nothing gets the mean of the values", "[layers]") {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    CAPTURE(name_of(dtype));
    const Tensor x = astype(tensor({{1.0, 2.0}, {3.0, 6.0}}), dtype);
    for (const Tensor& mask : {zeros({2, 2}, DType::boolean), full({2, 2}, -INFINITY, dtype)}) {
      const Tensor y = nn::attention(x, x, x, {.mask = mask});
      CHECK(worst(astype(y, DType::f64), tensor({{2.0, 4.0}, {2.0, 4.0}}, DType::f64)) == 0);
    }
  }
}

TEST_CASE("a call of attention that fails leaves the cache unchanged", "[layers]") {
  const nn::MultiHeadAttention layer(4, 2, kKey, {.causal = true});
  nn::AttentionCache cache;
  CHECK_THROWS_AS(layer(zeros({1, 1, 4}), {.mask = zeros({1, 1}, DType::c64), .cache = &cache}), Error);
  CHECK(cache.length() == 0);
  layer(zeros({1, 1, 4}), {.cache = &cache});
  CHECK(cache.length() == 1);
}

TEST_CASE("normalizing layers agree with torch") {
  check("layer_norm", nn::LayerNorm(6, {.dtype = DType::f64}));
  check("rms_norm", nn::RMSNorm(6, {.dtype = DType::f64}));
  check("group_norm", nn::GroupNorm(3, 6, {.dtype = DType::f64}));
  const nn::BatchNorm norm(3, {.momentum = 0.9, .dtype = DType::f64});
  check("batch_norm", norm, [&](const Tensor& x) { return norm(x, {.training = true}); });
  CHECK(worst(norm.mean, value_of("batch_norm", "mean")) < 1e-14);
  CHECK(worst(norm.variance, value_of("batch_norm", "variance")) < 1e-14);
  check("batch_norm_inference", nn::BatchNorm(3, {.dtype = DType::f64}));
}

TEST_CASE("a batch of one row leaves running statistics unchanged, and warns") {
  const test::Warnings warnings;
  const nn::BatchNorm norm(3);
  norm(random::normal({8, 3}, kKey), {.training = true});
  const std::vector<double> mean = norm.mean.value().to_vector(),
                            variance = norm.variance.value().to_vector();
  CHECK(warnings.texts.empty());
  CHECK(norm(random::normal({1, 3}, kKey), {.training = true}).to_vector() == std::vector<double>(3, 0));
  REQUIRE(warnings.texts.size() == 1);
  CHECK_THAT(warnings.texts[0],
             Catch::Matchers::StartsWith("batch_norm: in training a batch of one element"));
  CHECK(norm.mean.value().to_vector() == mean);
  CHECK(norm.variance.value().to_vector() == variance);
}

TEST_CASE("recurrent layers agree with torch, with lengths") {
  const Tensor lengths = value_of("lstm", "lengths");
  const auto flat = [](const Tensor& x) { return reshape(x, {-1}); };
  nn::Lstm lstm(2, 5, kKey, kF64);
  lstm.forget_bias = 0;
  check("lstm", lstm, [&](const Tensor& x) {
    const nn::LstmSequence y = lstm(x, lengths);
    return concat({flat(y.outputs), flat(y.state.h), flat(y.state.c)}, 0);
  });
  const nn::Gru gru(2, 5, kKey, kF64);
  check("gru", gru, [&](const Tensor& x) {
    const nn::GruSequence y = gru(x, value_of("gru", "lengths"));
    return concat({flat(y.outputs), flat(y.state)}, 0);
  });
}

TEST_CASE("recurrent layers continue from a state") {
  const Tensor x = random::normal({2, 6, 3}, {.seed = 5});
  const Tensor head = slice(x, {0, 0, 0}, {2, 4, 3}), tail = slice(x, {0, 4, 0}, {2, 2, 3});
  const nn::Lstm lstm(3, 4, kKey);
  const nn::LstmSequence whole = lstm(x), before = lstm(head), after = lstm(tail, {}, before.state);
  CHECK(worst(concat({before.outputs, after.outputs}, 1), whole) < 1e-6);
  CHECK(worst(after.state.c, whole.state.c) < 1e-6);
  const nn::Gru gru(3, 4, kKey);
  const nn::GruSequence all = gru(x), start = gru(head), end = gru(tail, {}, start.state);
  CHECK(worst(concat({start.outputs, end.outputs}, 1), all) < 1e-6);
  CHECK(worst(end.state, all.state) < 1e-6);

  CHECK(same_bits(lstm(x, tensor({0, 6}, DType::i64)).state.h[0], zeros({4})));
  CHECK(lstm(zeros({2, 0, 3})).outputs.shape() == Shape{2, 0, 4});
  CHECK(gru(zeros({2, 0, 3})).outputs.shape() == Shape{2, 0, 4});
  CHECK_THROWS_WITH(
      lstm(x, tensor({7, 6}, DType::i64)),
      "Lstm of f32[7,16], called with f32[2,6,3]: lstm: a length is 7, but time is 6; use 0..6");
  CHECK_THROWS_WITH(gru(x, tensor({6}, DType::i64)),
                    "Gru of f32[3,12], called with f32[2,6,3]: gru: lengths are i64[1]; they must be [2], "
                    "one for each sequence");
  CHECK_THROWS_WITH(lstm(zeros({2, 3})),
                    "Lstm of f32[7,16] expects [batch,time,3], got f32[2,3]: lstm: x is f32[2,3]; it must be "
                    "[batch, time, 3]");
}

TEST_CASE("attention agrees with torch") {
  check("attention", nn::MultiHeadAttention(8, 2, kKey, {.causal = true, .dtype = DType::f64}));
  const nn::MultiHeadAttention layer(8, 2, kKey, {.memory_width = 6, .dtype = DType::f64});
  check("attention_to_memory", layer, [&](const Tensor& x) {
    return layer(x, {.memory = value_of("attention_to_memory", "memory"),
                     .mask = value_of("attention_to_memory", "mask")});
  });
}

TEST_CASE("attention with a cache of keys and values agrees with the whole sequence") {
  const nn::MultiHeadAttention layer(8, 2, kKey, {.causal = true});
  const Tensor x = random::normal({2, 5, 8}, {.seed = 6});
  nn::AttentionCache cache;
  std::vector<Tensor> pieces;
  for (const auto& [begin, size] : {std::pair(0, 2), std::pair(2, 1), std::pair(3, 2)})
    pieces.push_back(layer(slice(x, {0, begin, 0}, {2, size, 8}), {.cache = &cache}));
  CHECK(cache.key.shape() == Shape{2, 5, 8});
  CHECK(worst(concat(pieces, 1), layer(x)) < 1e-6);
}

TEST_CASE("masks of attention are bools or numbers, and a query may have no key") {
  const Tensor q = random::normal({3, 4}, {.seed = 7}), k = random::normal({2, 4}, {.seed = 8}),
               v = random::normal({2, 5}, {.seed = 9});
  const Tensor mask = astype(tensor({{1, 0}, {0, 0}, {1, 1}}), DType::boolean);
  const Tensor y = nn::attention(q, k, v, {.mask = mask});
  CHECK(worst(y[0], v[0]) < 1e-6);
  CHECK(worst(y[1], mean(v, {0})) < 1e-6);
  CHECK(worst(y[2], nn::attention(q, k, v)[2]) < 1e-6);
  const Tensor added = where(mask, 0.0, -1e30);
  CHECK(worst(nn::attention(q, k, v, {.mask = astype(added, DType::f32)}), y) < 1e-6);
  CHECK_THROWS_WITH(nn::attention(q, k, v, {.mask = astype(mask, DType::i32)}),
                    "attention: the mask is i32[3,2]; use bools, or numbers to be added");
}

// std::max passes over NaN.
double worst_of_finite(const Tensor& a, const Tensor& b) {
  return std::isfinite(sum(a).item()) ? worst(a, b) : INFINITY;
}

TEST_CASE("causal attention stays causal with a mask, and with shared keys", "[attention]") {
  const Tensor q = random::normal({2, 3, 4}, {.seed = 1}, DType::f64),
               k = random::normal({3, 4}, {.seed = 2}, DType::f64),
               v = random::normal({3, 2}, {.seed = 3}, DType::f64);
  const Tensor everything = ones({3, 3}, DType::boolean), shared = broadcast_to(k, {2, 3, 4});
  const Tensor expected = nn::attention(q, shared, broadcast_to(v, {2, 3, 2}), {.causal = true});
  CHECK(worst(expected[{{}, 0}], stack({v[0], v[0]})) < 1e-14);   // the first row sees itself alone
  CHECK(worst(nn::attention(q, k, v, {.causal = true}), expected) < 1e-14);
  CHECK(worst(nn::attention(q, k, v, {.mask = everything, .causal = true}), expected) < 1e-14);
}

TEST_CASE("an added mask of -inf is one of bools, in values and derivatives") {
  const Tensor bits = astype(tensor({{1, 0, 1}, {0, 0, 0}, {1, 1, 1}, {0, 0, 1}}), DType::boolean);
  for (const DType t : {DType::f32, DType::f64})
    for (const bool causal : {false, true})
      for (const double dropout : {0.0, 0.5}) {
        CAPTURE(t, causal, dropout);
        const std::vector<Tensor> x = {random::normal({4, 5}, {.seed = 1}, t),
                                       random::normal({3, 5}, {.seed = 2}, t),
                                       random::normal({3, 2}, {.seed = 3}, t)};
        const auto attention = [&](const Tensor& mask) {
          return [&, mask](std::span<const Tensor> in) {
            return nn::attention(in[0], in[1], in[2],
                                 {.mask = mask,
                                  .causal = causal,
                                  .dropout = dropout,
                                  .run = {.training = true, .key = {.seed = 4}}});
          };
        };
        const auto by_bools = attention(bits), by_numbers = attention(astype(where(bits, 0.0, -INFINITY), t));
        const Tensor y = by_numbers(x), dy = random::normal(y.shape(), {.seed = 5}, t);
        const double tolerance = t == DType::f32 ? 1e-6 : 1e-14;
        CHECK(worst_of_finite(y, by_bools(x)) < tolerance);
        if (dropout == 0) CHECK(worst_of_finite(y[1], mean(x[2], {0})) < tolerance);
        const auto derivatives = [&](const auto& f) {
          GradientTape tape;
          for (const Tensor& in : x)
            tape.watch(in);
          return tape.gradient(sum(f(x) * dy), x);
        };
        const auto a = derivatives(by_numbers), b = derivatives(by_bools);
        for (std::size_t i = 0; i < x.size(); ++i) {
          CAPTURE(i);
          CHECK(worst_of_finite(a[i].dense(), b[i].dense()) < tolerance);
          const Tensor dx = random::normal(x[i].shape(), {.seed = 6}, t);
          const auto tangent = [&](const auto& f) {
            return jvp(
                [&](const Tensor& one) {
                  std::vector<Tensor> in = x;
                  in[i] = one;
                  return f(in);
                },
                x[i], dx);
          };
          CHECK(worst_of_finite(tangent(by_numbers), tangent(by_bools)) < tolerance);
        }
      }
}

TEST_CASE("dropout and batch normalization depend on the run") {
  const nn::Dropout dropout{0.25};
  const Tensor x = ones({1000});
  CHECK(same_bits(dropout(x), x));
  const Tensor dropped = dropout(x, {.training = true, .key = {.seed = 2}});
  CHECK(same_bits(dropped, tapedeck::dropout(x, 0.25, {.seed = 2})));
  CHECK(count_nonzero(dropped).item<std::int64_t>() < 800);
  const nn::Sequential net{nn::Dense(3, 4, kKey), nn::Residual{dropout}};
  const std::string text =
      "dropout: this run trains without a key, so each step would drop the same elements; pass a different "
      "key in each step, as in {.training = true, .key = key.split(step)}";
  CHECK_THROWS_WITH(dropout(x, {.training = true}), text);
  CHECK_THROWS_WITH(net(ones({2, 3}), {.training = true}), "1: " + text);
  CHECK_NOTHROW(dropout(x, {.training = true, .key = {}}));
  CHECK_NOTHROW(net(ones({2, 3})));
}

TEST_CASE("layers are called in order, with keys of their own") {
  const nn::Sequential net{nn::Dense(3, 4, kKey),
                           relu,
                           nn::Dropout{0.5},
                           nn::Dropout{0.5},
                           nn::Residual{nn::Dense(4, 4, kKey)},
                           [](const Tensor& x) { return sum(x, {-1}); }};
  const Tensor x = random::normal({5, 3}, {.seed = 1});
  const nn::Run run{.training = true, .key = {.seed = 8}};
  const Tensor hidden = relu(nn::Dense(3, 4, kKey)(x));
  const Tensor dropped =
      tapedeck::dropout(tapedeck::dropout(hidden, 0.5, run.key.split(2)), 0.5, run.key.split(3));
  CHECK(same_bits(net(x, run), sum(dropped + nn::Dense(4, 4, kKey)(dropped), {-1})));
  CHECK(net.size() == 6);
}

TEST_CASE("a network made of one network is its copy") {
  const nn::Sequential a{nn::Dense(3, 4, kKey), relu};
  const nn::Sequential b{a}, c = {a}, d(a), e{nn::Sequential{a}};
  for (const nn::Sequential* copy : {&b, &c, &d, &e}) {
    CHECK(copy->size() == 2);
    CHECK(nn::variables(*copy)[0].name == "0/kernel");
    CHECK(nn::variables(*copy)[0].variable == nn::variables(a)[0].variable);
  }
  // Several networks are layers, and so is one in a vector of layers.
  const nn::Sequential other{nn::Dense(4, 4, kKey)};
  CHECK(nn::variables(nn::Sequential{a, other}).back().name == "1/0/bias");
  CHECK(nn::variables(nn::Sequential{a, relu})[0].name == "0/0/kernel");
  CHECK(nn::variables(nn::Sequential(std::vector<nn::Layer>{a}))[0].name == "0/0/kernel");
  CHECK(nn::Sequential{nn::Dense(3, 4, kKey)}.size() == 1);
  CHECK(nn::Sequential{}.size() == 0);
}

TEST_CASE("attention of several dtypes agrees with promoted operands", "[layers][attention]") {
  for (const DType other : {DType::f64, DType::f16}) {
    const auto in = [&](bool is_other, std::uint64_t seed) {
      return astype(random::normal({2, 3, 4}, {.seed = seed}), is_other ? other : DType::f32);
    };
    for (int which = 1; which < 7; ++which) {   // neither none nor all of query, key and value
      const Tensor q = in(which & 1, 1), k = in(which & 2, 2), v = in(which & 4, 3);
      const DType wide = other == DType::f64 ? DType::f64 : DType::f32;
      const Tensor y = nn::attention(q, k, v);
      CAPTURE(which, q.spec(), k.spec(), v.spec());
      CHECK(y.dtype() == wide);
      CHECK(worst(y, nn::attention(astype(q, wide), astype(k, wide), astype(v, wide))) <
            (wide == other ? 1e-6 : 2e-3));
    }
  }
}

TEST_CASE("layers reject invalid sizes") {
  CHECK_THROWS_WITH(nn::Dense(0, 3, kKey), "dense: the kernel would be [0,3]; use sizes of 1 or more");
  CHECK_THROWS_WITH(nn::Gru(0, 3, kKey), "gru: the kernel would be [0,9]; use sizes of 1 or more");
  CHECK_THROWS_WITH(nn::Lstm(2, -1, kKey), "lstm: the kernel would be [2,-4]; use sizes of 1 or more");
  CHECK_THROWS_WITH(nn::Conv2d(4, 6, 3, kKey, {.groups = 4}),
                    "conv2d: groups is 4, which does not divide 4 and 6 channels");
  CHECK_THROWS_WITH(nn::Conv2d(4, 6, 3, kKey, {.groups = 0}),
                    "conv2d: groups is 0, which does not divide 4 and 6 channels");
  CHECK_THROWS_WITH(nn::Conv2d(4, 6, {3, 0}, kKey),
                    "conv2d: the kernel would be [3,0,4,6]; use sizes of 1 or more");
  CHECK_THROWS_WITH(nn::Conv2d(4, 6, 3, kKey, {.strides = {1, 0}}), "conv2d: strides are 1×0; use 1 or more");
  CHECK_THROWS_WITH(nn::Conv1d(4, 6, 3, kKey, {.dilation = 0}), "conv1d: dilation is 0; use 1 or more");
  CHECK_THROWS_WITH(nn::Conv3d(4, 6, 3, kKey, {.strides = {1, 2, -1}}),
                    "conv3d: strides are 1×2×-1; use 1 or more");
  CHECK_THROWS_WITH(nn::Conv2dTranspose(4, 6, 3, kKey, {.dilation = -1}),
                    "conv2d_transpose: dilation is -1×-1; use 1 or more");
  CHECK_THROWS_WITH(nn::Conv1dTranspose(4, 6, 3, kKey, {.strides = 0}),
                    "conv1d_transpose: strides are 0; use 1 or more");
  CHECK_THROWS_WITH(nn::MultiHeadAttention(8, 3, kKey),
                    "multi_head_attention: heads is 3, which does not divide width 8");
  CHECK_THROWS_WITH(nn::GroupNorm(4, 6), "group_norm: groups is 4, which does not divide 6 channels");
  CHECK_THROWS_WITH(nn::Gru(2, 3, kKey, {.use_bias = false}),
                    "gru: this layer always has a bias; set use_bias to true");
  CHECK_THROWS_WITH(nn::LayerNorm(0), "layer_norm: the size is 0; use 1 or more");
  CHECK_THROWS_WITH(
      nn::RMSNorm(3)(zeros({2, 4})),
      "RMSNorm of f32[3] expects [...,3], got f32[2,4]: rms_norm: x is f32[2,4]; its last axis must be 3");
}

namespace overloaded {
using tapedeck::gelu;
using tapedeck::relu;
[[maybe_unused]] double relu(double x) { return x; }   // as map.h has one
}   // namespace overloaded

TEST_CASE("ops with options and overloads are layers", "[nn]") {
  const nn::Sequential net{overloaded::relu, overloaded::gelu};
  const Tensor x = tensor({-1.0f, 2.0f});
  CHECK(net(x).to_vector() == gelu(relu(x)).to_vector());
}

TEST_CASE("elements beyond the length of a sequence do not affect gradients", "[layers]") {
  Tensor x = random::normal({2, 3, 2}, {.seed = 1});
  const Tensor beyond = tensor({{{0.0, 0.0}, {1.0, 1.0}, {1.0, 1.0}}, {{0.0, 0.0}, {0.0, 0.0}, {1.0, 1.0}}}),
               lengths = tensor({1, 2});
  const auto compare = [&](const auto& layer) {
    const auto gradients = [&](const Tensor& with) {
      GradientTape tape;
      const Tensor loss = sum(square(layer(with, lengths).outputs));
      return tape.gradient(loss, layer.kernel).dense();
    };
    const Tensor wanted = gradients(x);
    CHECK(worst(wanted, zeros(wanted.shape())) > 0.01);
    for (const double bad : {double(NAN), double(INFINITY), 7.0})
      CHECK(worst(gradients(where(beyond > 0.0, bad, x)), wanted) == 0);
  };
  compare(nn::Lstm(2, 3, kKey));
  compare(nn::Gru(2, 3, kKey));
  CHECK_THROWS_WITH(nn::Lstm(2, 3, kKey)(x, tensor({1.0, 2.5})),
                    Catch::Contains("lstm: lengths are f32[2]; use i32 or i64"));
}

TEST_CASE("layers have the requested dtype, and check their initializers", "[layers]") {
  const auto other = [](const Shape&, random::Key, DType dtype) { return zeros({1, 1}, dtype); };
  CHECK_THROWS_WITH(nn::Dense(2, 3, kKey, {.kernel = other}),
                    Catch::Contains("kernel: its initializer returned f32[1,1] instead of f32[2,3]"));
  const auto wide = [](const Shape& shape, random::Key, DType) { return zeros(shape, DType::f64); };
  CHECK_THROWS_WITH(nn::Dense(2, 3, kKey, {.bias = wide}),
                    Catch::Contains("bias: its initializer returned f64[3]"));
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const nn::Dense half(2, 3, kKey, {.dtype = dtype});
    CHECK(same_bits(half.kernel, astype(nn::Dense(2, 3, kKey).kernel, dtype)));
    CHECK(half(ones({1, 2}, dtype)).dtype() == dtype);
    CHECK(nn::Gru(2, 3, kKey, {.dtype = dtype})(ones({1, 4, 2}, dtype)).outputs.dtype() == dtype);
  }
  for (const double epsilon : {-1.0, double(NAN), double(INFINITY)}) {
    CHECK_THROWS_AS(nn::LayerNorm(2, {.epsilon = epsilon}), ArgumentError);
    CHECK_THROWS_AS(nn::RMSNorm(2, {.epsilon = epsilon}), ArgumentError);
    CHECK_THROWS_AS(nn::GroupNorm(1, 2, {.epsilon = epsilon}), ArgumentError);
    CHECK_THROWS_AS(nn::BatchNorm(2, {.epsilon = epsilon}), ArgumentError);
  }
  CHECK_THROWS_WITH(nn::LayerNorm(2, {.dtype = DType::i32}), Catch::Contains("layer_norm: the dtype is i32"));
  CHECK_THROWS_AS(nn::initializers::normal(-1), ArgumentError);
  CHECK_THROWS_WITH(nn::Residual{nn::Dense(3, 1, kKey)}(ones({2, 3})),
                    Catch::Contains("residual: x is f32[2,3], but its layer returns f32[2,1]"));
}

}   // namespace layers_test
