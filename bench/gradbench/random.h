// Seeded random numbers, equal with every compiler and standard library.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

#include "suite.h"

namespace gradbench {

class Random {
 public:
  explicit Random(std::uint64_t seed = 31337) : bits_(seed) {}

  double uniform(double low = 0, double high = 1) {
    return low + (high - low) * static_cast<double>(bits_() >> 11) * 0x1p-53;
  }
  double normal() {
    return std::sqrt(-2 * std::log(1 - uniform())) * std::cos(2 * std::numbers::pi * uniform());
  }
  /// A number in [0, n).
  int index(int n) { return static_cast<int>(bits_() % static_cast<std::uint64_t>(n)); }

  Values uniforms(std::size_t n, double low = 0, double high = 1) {
    Values v(n);
    for (double& x : v)
      x = uniform(low, high);
    return v;
  }
  Values normals(std::size_t n) {
    Values v(n);
    for (double& x : v)
      x = normal();
    return v;
  }

 private:
  std::mt19937_64 bits_;
};

}   // namespace gradbench
