// The limits of training steps: their matrix products by BLAS, and Adam in one pass.
#include <cmath>

#include "limits.h"

namespace bench {
namespace {

using benchmark::State;

// Multilayer perceptrons.

struct Layer {
  Layer(std::int64_t in, std::int64_t out)
      : n(in), m(out), w(n * m), dw(n * m), mean(n * m), square(n * m, 1.0f) {}
  void adam() {
    float* __restrict p = w, * __restrict s = mean, * __restrict r = square;
    const float* g = dw;
    for (std::int64_t i = 0; i < n * m; ++i) {
      s[i] = 0.9f * s[i] + 0.1f * g[i];
      r[i] = 0.999f * r[i] + 0.001f * g[i] * g[i];
      p[i] -= 1e-9f * s[i] / (std::sqrt(r[i]) + 1e-8f);
    }
  }
  std::int64_t n, m;
  Buffer w, dw, mean, square;
};

struct Mlp {
  void forward() {
    for (std::size_t i = 0; i < 3; ++i)
      product(Turn::none, kBatch, layers[i].m, layers[i].n, y[i], layers[i].w, y[i + 1]);
  }
  void backward() {
    for (std::size_t i = 3; i-- > 0;) {
      Layer& l = layers[i];
      product(Turn::a, l.n, l.m, kBatch, y[i], dy[i + 1], l.dw);
      if (i) product(Turn::b, kBatch, l.n, l.m, dy[i + 1], l.w, dy[i]);
    }
  }
  void update() {
    for (Layer& l : layers)
      l.adam();
  }

  static constexpr std::int64_t kBatch = 128;
  Layer layers[3] = {{784, 512}, {512, 512}, {512, 10}};
  Buffer y[4] = {Buffer(kBatch * 784), Buffer(kBatch * 512), Buffer(kBatch * 512), Buffer(kBatch * 10)};
  Buffer dy[4] = {Buffer(kBatch * 784), Buffer(kBatch * 512), Buffer(kBatch * 512), Buffer(kBatch * 10)};
};

void mlp(State& state, void (*f)(Mlp&)) {
  Mlp net;
  repeat(state, [&] { f(net); });
}

void register_mlp_cases() {
  in_microseconds("train/mlp_step/128", mlp, [](Mlp& net) { net.forward(), net.backward(), net.update(); });
  in_microseconds("train/mlp_forward/128", mlp, [](Mlp& net) { net.forward(); });
  in_microseconds("train/mlp_gradients/128", mlp, [](Mlp& net) { net.forward(), net.backward(); });
  in_microseconds("train/mlp_adam/128", mlp, [](Mlp& net) { net.update(); });
}

// The LSTM's products: in each step two forward, and one for the gradient of each weight and of the hidden
// state.

void lstm(State& state) {
  constexpr std::int64_t steps = 100, batch = 32, hidden = 128, gates = 4 * hidden;
  Buffer x(batch * hidden), h(batch * hidden), z(batch * gates), wx(hidden * gates), wh(hidden * gates),
      dwx(hidden * gates), dwh(hidden * gates), dh(batch * hidden);
  repeat(state, [&] {
    for (std::int64_t t = 0; t < steps; ++t) {
      product(Turn::none, batch, gates, hidden, x, wx, z);
      product(Turn::none, batch, gates, hidden, h, wh, z);
      product(Turn::a, hidden, gates, batch, x, z, dwx);
      product(Turn::a, hidden, gates, batch, h, z, dwh);
      product(Turn::b, batch, hidden, gates, z, wh, dh);
    }
  });
}

// The convolutional network's products, with an image's windows as the rows of one matrix. The gradient of
// the images is not needed.

struct Product {
  std::int64_t m, n, k;
};

void convnet(State& state) {
  constexpr std::int64_t batch = 64;
  constexpr Product products[] = {
      {batch * 28 * 28, 32, 25}, {batch * 14 * 14, 64, 800}, {batch, 1024, 7 * 7 * 64}, {batch, 10, 1024}};
  Buffer a(batch * 14 * 14 * 800), b(7 * 7 * 64 * 1024), y(batch * 28 * 28 * 32), da(batch * 14 * 14 * 800),
      db(7 * 7 * 64 * 1024);
  repeat(state, [&] {
    for (const Product& p : products) {
      product(Turn::none, p.m, p.n, p.k, a, b, y);
      product(Turn::a, p.k, p.n, p.m, a, y, db);
      if (p.k != 25) product(Turn::b, p.m, p.k, p.n, y, b, da);
    }
  });
}

}   // namespace

void register_training_limits() {
  register_mlp_cases();
  benchmark::RegisterBenchmark("train/lstm_gradients/100x32x128", lstm)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  benchmark::RegisterBenchmark("train/convnet_gradients/64", convnet)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

}   // namespace bench
