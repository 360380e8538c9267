// Compares layers with libtorch's in one process, alternately, with the same variables: forward without a
// tape, and forward with the gradients of the input and all variables. Prints for each case the factor by
// which tapedeck is faster. Arguments: words; only cases whose names contain one of them run (all by
// default).
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <string>

#include "pair.h"
#include "tapedeck/nn.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
namespace nn = td::nn;
namespace tf = torch::nn::functional;

namespace {

torch::Tensor copied(const td::Tensor& x) {
  const bool f32 = x.dtype() == td::DType::f32;
  const std::vector<std::int64_t> shape(x.shape().begin(), x.shape().end());
  const void* data = f32 ? static_cast<const void*>(x.data<float>().data()) : x.data<std::int64_t>().data();
  return torch::from_blob(const_cast<void*>(data), shape, f32 ? torch::kFloat : torch::kLong).clone();
}

bool agree(const td::Tensor& ours, const torch::Tensor& theirs) {
  if (ours.size() != theirs.numel()) return false;
  const std::vector<double> a = ours.to_vector();
  const torch::Tensor all = theirs.detach().to(torch::kDouble).contiguous();
  const double* b = all.data_ptr<double>();
  const double most = 1e-4 * (all.numel() == 0 ? 1 : std::max(all.abs().max().item<double>(), 1.0));
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= most)) return false;
  return true;
}

using Ours = std::function<td::Tensor(const td::Tensor&)>;
using Theirs = std::function<torch::Tensor(const torch::Tensor&, const std::vector<torch::Tensor>&)>;

struct Layer {
  std::string name, size;
  td::Tensor x;
  std::vector<td::Variable> variables;
  Ours ours;
  Theirs theirs;            // uses the variables' values without conversion
  bool is_random = false;   // or differs in other ways, so that results are not compared
};

void add(std::vector<bench::Race>& races, const Layer& l) {
  const td::Variable x(l.x);   // trainable if it is of floating point
  const torch::Tensor their_x = copied(l.x).set_requires_grad(x.trainable());
  std::vector<torch::Tensor> variables, their_sources;
  std::vector<td::Variable> sources;
  for (const td::Variable& v : l.variables) {
    variables.push_back(copied(v.value()).set_requires_grad(v.trainable()));
    if (v.trainable()) sources.push_back(v), their_sources.push_back(variables.back());
  }
  if (x.trainable()) sources.push_back(x), their_sources.push_back(their_x);

  const auto forward = [=] { return l.ours(x); };
  const auto their_forward = [=] {
    const torch::NoGradGuard guard;
    return l.theirs(their_x, variables);
  };
  races.push_back({l.name, l.size, [=] { forward(); }, [=] { their_forward(); },
                   [=] { return l.is_random || agree(forward(), their_forward()); }});

  const td::Tensor dy = td::random::normal(forward().shape(), {.seed = 99});
  const torch::Tensor their_dy = copied(dy);
  const auto gradients = [=] {
    td::GradientTape tape;
    const td::Tensor y = l.ours(x);
    return tape.gradient({y}, sources, {.output_gradients = {dy}});
  };
  const auto their_gradients = [=] {
    return torch::autograd::grad({l.theirs(their_x, variables)}, their_sources, {their_dy});
  };
  races.push_back({l.name + ", gradients", l.size, [=] { gradients(); }, [=] { their_gradients(); },
                   [=] {
                     if (l.is_random) return true;
                     const std::vector<td::Gradient> a = gradients();
                     const auto b = their_gradients();
                     for (std::size_t i = 0; i < a.size(); ++i)
                       if (!agree(a[i].dense(), b[i])) return false;
                     return true;
                   }});
}

constexpr td::random::Key kKey{.seed = 1};

struct Block {
  td::random::Key key;
  std::int64_t width, heads;
  nn::LayerNorm before_attention{width}, before_mlp{width};
  nn::MultiHeadAttention attention{width, heads, key.split(0), {.causal = true}};
  nn::Dense up{width, 4 * width, key.split(1)}, down{4 * width, width, key.split(2)};

  td::Tensor operator()(const td::Tensor& x) const {
    const td::Tensor y = x + attention(before_attention(x));
    return y + down(td::gelu(up(before_mlp(y))));
  }
};
torch::Tensor their_dense(const torch::Tensor& x, const torch::Tensor& kernel, const torch::Tensor& bias) {
  const std::vector<std::int64_t> s = x.sizes().vec();
  return torch::addmm(bias, x.reshape({-1, s.back()}), kernel).view({s[0], s[1], kernel.size(1)});
}
torch::Tensor their_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                              const torch::Tensor& mask) {
  torch::Tensor scores =
      torch::matmul(q * (1 / std::sqrt(static_cast<double>(q.size(-1)))), k.transpose(-2, -1));
  if (mask.defined()) scores = scores + mask;
  return torch::matmul(torch::softmax(scores, -1), v);
}
torch::Tensor their_heads(const torch::Tensor& x, std::int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

Layer block(std::int64_t batch, std::int64_t length, std::int64_t width, std::int64_t heads) {
  const Block ours{kKey, width, heads};
  const torch::Tensor mask = torch::full({length, length}, -INFINITY).triu(1);
  // Variables in the order of the members: two norms, four projections, up and down, two of each.
  return {"transformer block",
          td::to_string(td::Shape{batch, length, width}),
          td::random::normal({batch, length, width}, kKey),
          nn::trainable_variables(ours),
          ours,
          [=](const torch::Tensor& x, const std::vector<torch::Tensor>& v) {
            const torch::Tensor h = torch::layer_norm(x, {width}, v[0], v[1]);
            const torch::Tensor q = their_heads(their_dense(h, v[4], v[5]), heads),
                                k = their_heads(their_dense(h, v[6], v[7]), heads),
                                u = their_heads(their_dense(h, v[8], v[9]), heads);
            const torch::Tensor heard = their_attention(q, k, u, mask).transpose(1, 2).reshape(x.sizes());
            const torch::Tensor y = x + their_dense(heard, v[10], v[11]);
            const torch::Tensor m = torch::layer_norm(y, {width}, v[2], v[3]);
            return y + their_dense(torch::gelu(their_dense(m, v[12], v[13])), v[14], v[15]);
          }};
}

Layer layer_norm(std::int64_t rows, std::int64_t width) {
  const nn::LayerNorm ours(width);
  return {"layer_norm",
          td::to_string(td::Shape{rows, width}),
          td::random::normal({rows, width}, kKey),
          nn::trainable_variables(ours),
          ours,
          [=](const torch::Tensor& x, const std::vector<torch::Tensor>& v) {
            return torch::layer_norm(x, {width}, v[0], v[1]);
          }};
}

// Batch normalization of rows, in which both libraries have the channels last.
Layer batch_norm(std::int64_t rows, std::int64_t channels) {
  const nn::BatchNorm ours(channels);
  return {"batch_norm",
          td::to_string(td::Shape{rows, channels}),
          td::random::normal({rows, channels}, kKey),
          {ours.scale, ours.offset, ours.mean, ours.variance},
          [=](const td::Tensor& x) { return ours(x, {.training = true}); },
          [=](const torch::Tensor& x, const std::vector<torch::Tensor>& v) {
            return torch::batch_norm(x, v[0], v[1], v[2], v[3], true, 0.1, 1e-5, false);
          }};
}

// Batch normalization of images, each library in its own layout: the channels of the numbers differ.
Layer batch_norm_of_images(std::int64_t n, std::int64_t extent, std::int64_t channels) {
  const nn::BatchNorm ours(channels);
  return {"batch_norm, images",
          td::to_string(td::Shape{n, extent, extent, channels}),
          td::random::normal({n, extent, extent, channels}, kKey),
          {ours.scale, ours.offset, ours.mean, ours.variance},
          [=](const td::Tensor& x) { return ours(x, {.training = true}); },
          [=](const torch::Tensor& x, const std::vector<torch::Tensor>& v) {
            const torch::Tensor images = x.view({n, channels, extent, extent});
            return torch::batch_norm(images, v[0], v[1], v[2], v[3], true, 0.1, 1e-5, false).view(x.sizes());
          },
          true};
}

Layer attention(std::int64_t batch, std::int64_t heads, std::int64_t length, std::int64_t depth) {
  const td::Shape shape{batch, heads, length, depth};
  const td::Variable k(td::random::normal(shape, kKey.split(1))), v(td::random::normal(shape, kKey.split(2)));
  return {"attention",
          td::to_string(shape),
          td::random::normal(shape, kKey),
          {k, v},
          [=](const td::Tensor& q) { return nn::attention(q, k, v); },
          [=](const torch::Tensor& q, const std::vector<torch::Tensor>& kv) {
            return their_attention(q, kv[0], kv[1], {});
          }};
}

Layer embedding(std::int64_t count, std::int64_t width, std::int64_t ids, bool sparse) {
  const nn::Embedding ours(count, width, kKey);
  return {sparse ? "embedding, sparse" : "embedding",
          td::to_string(td::Shape{count, width}) + " " + std::to_string(ids),
          td::astype(td::random::uniform({ids}, kKey, 0, static_cast<double>(count)), td::DType::i64),
          nn::trainable_variables(ours),
          ours,
          [=](const torch::Tensor& x, const std::vector<torch::Tensor>& v) {
            return torch::embedding(v[0], x, -1, false, sparse);
          },
          true};
}

Layer dropout(std::int64_t n) {
  const nn::Dropout ours{0.1};
  return {
      "dropout",
      std::to_string(n),
      td::random::normal({n}, kKey),
      {},
      [=](const td::Tensor& x) { return ours(x, {.training = true, .key = kKey}); },
      [=](const torch::Tensor& x, const std::vector<torch::Tensor>&) { return torch::dropout(x, 0.1, true); },
      true};
}

Layer lstm(std::int64_t time, std::int64_t batch, std::int64_t inputs, std::int64_t units) {
  nn::Lstm ours(inputs, units, kKey);
  ours.forget_bias = 0;
  // libtorch's order of gates differs, so results differ. libtorch gets the kernel in two parts, transposed.
  return {
      "lstm",
      td::to_string(td::Shape{batch, time, inputs}) + " " + std::to_string(units),
      td::random::normal({batch, time, inputs}, kKey),
      {ours.kernel, ours.bias},
      ours,
      [=](const torch::Tensor& x, const std::vector<torch::Tensor>& v) {
        const torch::Tensor zero = torch::zeros({1, batch, units});
        const torch::Tensor k = v[0].t();
        const auto parts = torch::split_with_sizes(k, {inputs, units}, 1);
        return std::get<0>(torch::lstm(x, {zero, zero}, {parts[0], parts[1], v[1], torch::zeros({4 * units})},
                                       true, 1, 0.0, true, false, true));
      },
      true};
}

}   // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(1);
  std::vector<bench::Race> races;
  add(races, block(16, 128, 256, 4));
  add(races, block(2, 16, 32, 2));
  add(races, layer_norm(16, 64));
  add(races, layer_norm(2048, 256));
  add(races, batch_norm(32, 64));
  add(races, batch_norm(8192, 256));
  add(races, batch_norm_of_images(32, 32, 64));
  add(races, attention(2, 2, 16, 16));
  add(races, attention(16, 4, 128, 64));
  add(races, embedding(100, 16, 8, true));
  add(races, embedding(100, 16, 8, false));
  add(races, embedding(100000, 64, 1024, true));
  add(races, dropout(64));
  add(races, dropout(1000000));
  add(races, lstm(100, 32, 128, 128));
  add(races, lstm(100, 1, 16, 16));
  return bench::run(races, std::vector<std::string_view>(argv + 1, argv + argc));
}
