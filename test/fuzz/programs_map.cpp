// Elementwise functions for random programs.
#include "programs.h"
#include "tapedeck/map.h"

namespace tapedeck::fuzz {

std::vector<Tensor> mapped(int which, const Tensor& a, const Tensor& b) {
  if (which % 3 == 0) return {map([](auto x, auto y) { return x * sin(y) + exp(-x * x); }, a, b)};
  if (which % 3 == 1)
    return {map([](auto x, auto y) { return where(x > y, x * y, y / (2.0 + cos(x))); }, a, b)};
  const auto both = map(
      [](auto x, auto y) {
        const auto s = sigmoid(x + 0.5 * y);
        return std::array{s * y, log1p(x * x) - s};
      },
      a, b);
  return {both[0], both[1]};
}

}   // namespace tapedeck::fuzz
