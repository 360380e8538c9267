// An LSTM cell, compared with the matrix products in it.
#include <cmath>
#include <cstdio>

#include "cases.h"

namespace bench {
namespace {

constexpr std::int64_t kSteps = 100, kBatch = 32, kWidth = 128, kGates = 4 * kWidth;

// x: the weights of inputs and of states, the biases, the inputs [steps, batch, width]. Returns the sum of
// the last outputs, and its gradients by weights and biases.
Tensors lstm(const Tensors& in) {
  td::GradientTape tape;
  for (int i = 0; i < 3; ++i)
    tape.watch(in[static_cast<std::size_t>(i)]);
  const auto step = [w = in[0], u = in[1], b = in[2]](const td::Tensor& h, const td::Tensor& c,
                                                      const td::Tensor& x) {
    const td::Tensor z = td::matmul(x, w) + td::matmul(h, u) + b;
    const auto gate = [&](std::int64_t k) { return td::slice(z, {0, k * kWidth}, {kBatch, kWidth}); };
    const td::Tensor next = td::sigmoid(gate(1)) * c + td::sigmoid(gate(0)) * td::tanh(gate(2));
    return std::pair(td::sigmoid(gate(3)) * td::tanh(next), next);
  };
  const td::Tensor zero = td::zeros({kBatch, kWidth}, td::DType::f32);
  const td::Tensor loss = td::sum(td::scan(step, {zero, zero}, {in[3]}).first);
  const auto [dw, du, db] = tape.gradient(loss, in[0], in[1], in[2]);
  return {loss, dw.dense(), du.dense(), db.dense()};
}

// The matrix products of all steps and of their gradients.
void products(const Tensors& in, const td::Tensor& x, const td::Tensor& h, const td::Tensor& dz) {
  for (std::int64_t k = 0; k < kSteps; ++k) {
    (void)td::matmul(x, in[0]);
    (void)td::matmul(h, in[1]);
  }
  for (std::int64_t k = 0; k < kSteps; ++k) {
    (void)td::matmul(dz, in[1], {.transpose_b = true});
    (void)td::matmul(x, dz, {.transpose_a = true});
    (void)td::matmul(h, dz, {.transpose_a = true});
  }
}

// c[m, n] += a b, where a[i, l] is at i * row + l * column.
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t row,
              std::int64_t column, const float* b, float* c) {
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t l = 0; l < k; ++l) {
      const float factor = a[i * row + l * column];
      for (std::int64_t j = 0; j < n; ++j)
        c[i * n + j] += factor * b[l * n + j];
    }
}

using Floats = std::vector<float>;
Floats floats(std::int64_t n) { return Floats(static_cast<std::size_t>(n)); }
float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

Numbers lstm_by_hand(const float* w, const float* u, const float* b, const float* x) {
  constexpr std::int64_t state = kBatch * kWidth, gates = kBatch * kGates;
  static Floats z = floats(kSteps * gates), h = floats((kSteps + 1) * state), c = h, dz = floats(gates);
  for (std::int64_t k = 0; k < kSteps; ++k) {
    float* const s = &z[static_cast<std::size_t>(k * gates)];
    const float *const hk = &h[static_cast<std::size_t>(k * state)],
                       *const ck = &c[static_cast<std::size_t>(k * state)];
    float *const next_h = const_cast<float*>(hk) + state, *const next_c = const_cast<float*>(ck) + state;
    for (std::int64_t r = 0; r < kBatch; ++r)
      std::copy(b, b + kGates, s + r * kGates);
    multiply(kBatch, kGates, kWidth, x + k * state, kWidth, 1, w, s);
    multiply(kBatch, kGates, kWidth, hk, kWidth, 1, u, s);
    for (std::int64_t r = 0; r < kBatch; ++r)
      for (std::int64_t i = 0; i < kWidth; ++i) {
        float* const g = s + r * kGates + i;
        const std::int64_t at = r * kWidth + i;
        g[0] = sigmoid(g[0]), g[kWidth] = sigmoid(g[kWidth]);
        g[2 * kWidth] = std::tanh(g[2 * kWidth]), g[3 * kWidth] = sigmoid(g[3 * kWidth]);
        next_c[at] = g[kWidth] * ck[at] + g[0] * g[2 * kWidth];
        next_h[at] = g[3 * kWidth] * std::tanh(next_c[at]);
      }
  }
  double loss = 0;
  for (std::int64_t i = 0; i < state; ++i)
    loss += h[static_cast<std::size_t>(kSteps * state + i)];
  Floats dw = floats(kWidth * kGates), du = dw, db = floats(kGates), dh(static_cast<std::size_t>(state), 1),
         dc = floats(state), transposed = floats(kGates * kWidth);
  for (std::int64_t i = 0; i < kWidth; ++i)
    for (std::int64_t j = 0; j < kGates; ++j)
      transposed[static_cast<std::size_t>(j * kWidth + i)] = u[i * kGates + j];
  for (std::int64_t k = kSteps; k-- > 0;) {
    const float *const s = &z[static_cast<std::size_t>(k * gates)],
                       *const hk = &h[static_cast<std::size_t>(k * state)],
                       *const ck = &c[static_cast<std::size_t>(k * state)];
    for (std::int64_t r = 0; r < kBatch; ++r)
      for (std::int64_t i = 0; i < kWidth; ++i) {
        const auto at = static_cast<std::size_t>(r * kWidth + i);
        const float* const g = s + r * kGates + i;
        float* const d = &dz[static_cast<std::size_t>(r * kGates + i)];
        const float in = g[0], forget = g[kWidth], change = g[2 * kWidth], out = g[3 * kWidth];
        const float t = std::tanh(ck[state + r * kWidth + i]);
        const float dnext = dc[at] + dh[at] * out * (1 - t * t);
        d[0] = dnext * change * in * (1 - in);
        d[kWidth] = dnext * ck[r * kWidth + i] * forget * (1 - forget);
        d[2 * kWidth] = dnext * in * (1 - change * change);
        d[3 * kWidth] = dh[at] * t * out * (1 - out);
        dc[at] = dnext * forget;
      }
    for (std::int64_t r = 0; r < kBatch; ++r)
      for (std::int64_t j = 0; j < kGates; ++j)
        db[static_cast<std::size_t>(j)] += dz[static_cast<std::size_t>(r * kGates + j)];
    multiply(kWidth, kGates, kBatch, x + k * state, 1, kWidth, dz.data(), dw.data());
    multiply(kWidth, kGates, kBatch, hk, 1, kWidth, dz.data(), du.data());
    std::fill(dh.begin(), dh.end(), 0.0F);
    multiply(kBatch, kWidth, kGates, dz.data(), kGates, 1, transposed.data(), dh.data());
  }
  Numbers all = {loss};
  for (const Floats* g : {&dw, &du, &db})
    all.insert(all.end(), g->begin(), g->end());
  return all;
}

}   // namespace

void run_lstm() {
  const std::string name = "LSTM cell, 100 steps, gradient";
  if (!is_chosen(name)) return;
  const Tensors in = {numbers({kWidth, kGates}, 1, -0.1, 0.1), numbers({kWidth, kGates}, 2, -0.1, 0.1),
                      numbers({kGates}, 3, -0.1, 0.1), numbers({kSteps, kBatch, kWidth}, 4, -1, 1)};
  const td::Tensor x = numbers({kBatch, kWidth}, 5), h = numbers({kBatch, kWidth}, 6),
                   dz = numbers({kBatch, kGates}, 7);
  const auto data = [&](std::size_t i) { return in[i].data<float>().data(); };
  const Race r = race({.name = name,
                       .x = in,
                       .f = lstm,
                       .by_hand = [&] { return lstm_by_hand(data(0), data(1), data(2), data(3)); },
                       .tolerance = 1e-3,
                       .more = {[&] { products(in, x, h, dz); }}});
  char remark[160];
  std::snprintf(remark, sizeof remark, "%.4g ms, %.3g times by hand, %.3g times as fast as eager",
                r.seconds(replay) * 1e3, r.ratio(replay, hand), r.ratio(eager, replay));
  report(name, r.ratio(eager + 1, replay), "of the products", {.at_least = 0.9}, remark);
}

}   // namespace bench
