// Whether two forms of an eval compute the same.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "suite.h"

namespace gradbench {

/// The largest difference of a from what is expected, relative to the largest expected value, or absolute
/// where all of these are 0; infinite where the lists differ in length or one has a NaN.
inline double difference(const Values& a, const Values& expected) {
  if (a.size() != expected.size()) return INFINITY;
  double most = 0, apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(expected[i])) return INFINITY;
    most = std::max(most, std::abs(expected[i]));
    apart = std::max(apart, std::abs(a[i] - expected[i]));
  }
  constexpr double least = std::numeric_limits<double>::min();   // what is too small for a normal number is 0
  return apart < least ? 0 : most < least ? apart : apart / most;
}
inline constexpr double kTolerance = 1e-10;

}   // namespace gradbench
