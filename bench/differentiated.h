// Functions whose derivatives several programs measure.
#pragma once
#include "tapedeck/gradients.h"
#include "tapedeck/tapedeck.h"

namespace bench {

inline tapedeck::Tensor rosenbrock(const tapedeck::Tensor& x) {
  const std::int64_t n = x.size() - 1;
  const tapedeck::Tensor a = tapedeck::slice(x, {0}, {n}), b = tapedeck::slice(x, {1}, {n});
  return tapedeck::sum(100 * tapedeck::square(b - a * a) + tapedeck::square(1 - a));
}
/// n numbers from -1 to 1, in f64.
inline tapedeck::Tensor points(std::int64_t n) {
  return tapedeck::arange(0, static_cast<double>(n), 1, tapedeck::DType::f64) *
             (2 / static_cast<double>(n - 1)) -
         1;
}

/// A network with 100 outputs.
struct Network {
  static constexpr std::int64_t kOut = 100;

  Network(std::int64_t in, std::int64_t units)
      : a(tapedeck::random::normal({in, units}, {.seed = 1}) * 0.1),
        b(tapedeck::random::normal({units}, {.seed = 2})),
        c(tapedeck::random::normal({units, kOut}, {.seed = 3}) * 0.1),
        d(tapedeck::random::normal({kOut}, {.seed = 4})),
        x(tapedeck::random::normal({1, in}, {.seed = 5})) {}
  tapedeck::Tensor a, b, c, d, x;

  tapedeck::Tensor operator()(const tapedeck::Tensor& input) const {
    return tapedeck::matmul(tapedeck::tanh(tapedeck::matmul(input, a) + b), c) + d;
  }
};

/// The network's Jacobian, computed as one gradient per row.
inline tapedeck::Tensor gradient_calls(const Network& network) {
  tapedeck::GradientTape tape({.persistent = true});
  tape.watch(network.x);
  const tapedeck::Tensor y = network(network.x);
  tape.stop();
  std::vector<tapedeck::Tensor> rows;
  for (std::int64_t i = 0; i < Network::kOut; ++i)
    rows.push_back(tape.gradient(y, network.x,
                                 {.output_gradients = {tapedeck::pad(tapedeck::ones({1, 1}), {0, i},
                                                                     {0, Network::kOut - 1 - i})}})
                       .dense());
  return tapedeck::concat(rows, 0);
}

}   // namespace bench
