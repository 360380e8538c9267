// Compares the results of two forms of an eval.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "suite.h"

namespace gradbench {

/// The largest difference between a and the expected values, relative to the largest expected value, or
/// absolute if all expected values are 0. Infinite if the lists differ in length, or if a value is not
/// finite.
inline double difference(const Values& a, const Values& expected) {
  if (a.size() != expected.size()) return INFINITY;
  double most = 0, apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(expected[i])) return INFINITY;
    most = std::max(most, std::abs(expected[i]));
    apart = std::max(apart, std::abs(a[i] - expected[i]));
  }
  constexpr double least = std::numeric_limits<double>::min();   // subnormal numbers count as 0
  return apart < least ? 0 : most < least ? apart : apart / most;
}
inline constexpr double kTolerance = 1e-10;

}   // namespace gradbench
