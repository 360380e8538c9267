// Distances between samples and distributions.
#pragma once
#include <algorithm>
#include <cmath>

#include "tapedeck/tapedeck.h"

namespace tapedeck::test {

inline std::vector<double> sorted(const Tensor& x) {
  std::vector<double> v = x.to_vector();
  std::sort(v.begin(), v.end());
  return v;
}

// The Kolmogorov-Smirnov statistic: sqrt(n) times the largest distance from the distribution function. It
// exceeds 1.95 in one case of 1000.
template <class F> double distance_from(const F& distribution, const Tensor& x) {
  const std::vector<double> v = sorted(x);
  const double n = static_cast<double>(v.size());
  double largest = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double p = distribution(v[i]), rank = static_cast<double>(i);
    largest = std::max({largest, p - rank / n, (rank + 1) / n - p});
  }
  return std::sqrt(n) * largest;
}

inline double moment(const Tensor& x, int order) {
  double total = 0;
  for (const double v : x.to_vector())
    total += std::pow(v, order);
  return total / static_cast<double>(x.size());
}

}   // namespace tapedeck::test
