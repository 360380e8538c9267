// A language model: layers of diagonal LSTM cells on the bits of characters, and the mean log-loss of the
// next character.
#pragma once
#include <cmath>

#include "suite.h"

namespace gradbench::lstm {

struct Input {
  int layers, count, bits;   // numbers of layers, of characters, and of bits per character
  Values main;       // [2 layers, 4 bits]: for each layer the weights, then the biases of its four gates
  Values extra;      // [3, bits]: weights of the input, weights and biases of the output
  Values state;      // [2 layers, bits]: for each layer the output and the cell before the first character
  Values sequence;   // [count, bits]
};
Forms forms(const std::shared_ptr<const Input>& in);
Eval eval();

template <class T> static T sigmoid(const T& x) {
  using std::exp;
  return 1 / (1 + exp(-x));
}
/// One layer, from input x to output h. w: the weights of the gates forget, in, out and change, then the
/// biases.
template <class T> static void cell(std::size_t b, const T* w, const T* x, T* h, T* c) {
  using std::tanh;
  const T* bias = w + 4 * b;
  for (std::size_t i = 0; i < b; ++i) {
    const T forget = sigmoid<T>(x[i] * w[i] + bias[i]);
    const T in = sigmoid<T>(h[i] * w[b + i] + bias[b + i]);
    const T out = sigmoid<T>(x[i] * w[2 * b + i] + bias[2 * b + i]);
    const T change = tanh(h[i] * w[3 * b + i] + bias[3 * b + i]);
    c[i] = c[i] * forget + in * change;
    h[i] = out * tanh(c[i]);
  }
}

/// w: main, then extra. The suite adds 2 to the sum of exponentials.
template <class T> static T objective(const Input& in, const T* w) {
  using std::exp, std::log;
  const auto b = static_cast<std::size_t>(in.bits), layers = static_cast<std::size_t>(in.layers);
  const T* extra = w + 8 * b * layers;
  std::vector<T> h(b * layers), c(b * layers), x(b);
  for (std::size_t l = 0; l < layers; ++l)
    for (std::size_t i = 0; i < b; ++i) {
      h[l * b + i] = in.state[2 * l * b + i];
      c[l * b + i] = in.state[(2 * l + 1) * b + i];
    }
  T total = 0;
  for (int t = 0; t + 1 < in.count; ++t) {
    const double *now = &in.sequence[static_cast<std::size_t>(t) * b], *next = now + b;
    for (std::size_t i = 0; i < b; ++i)
      x[i] = now[i] * extra[i];
    for (std::size_t l = 0; l < layers; ++l)
      cell(b, w + 8 * b * l, l == 0 ? x.data() : &h[(l - 1) * b], &h[l * b], &c[l * b]);
    T sum = 2;
    for (std::size_t i = 0; i < b; ++i) {
      x[i] = h[(layers - 1) * b + i] * extra[b + i] + extra[2 * b + i];
      sum += exp(x[i]);
    }
    const T norm = log(sum);
    for (std::size_t i = 0; i < b; ++i)
      total += next[i] * (x[i] - norm);
  }
  return -total / (in.bits * (in.count - 1));
}

}   // namespace gradbench::lstm
