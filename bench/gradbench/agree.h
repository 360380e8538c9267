// Whether two forms of an eval compute the same.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include "suite.h"

namespace gradbench {

/// The largest difference, relative to the largest value; infinite where the lists differ in length or one
/// has a NaN.
inline double difference(const Values& a, const Values& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0, apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    most = std::max(most, std::abs(b[i]));
    apart = std::max(apart, std::abs(a[i] - b[i]));
  }
  return apart < 1e-300 ? 0 : apart / most;   // what is too small for a normal number is 0
}
inline constexpr double kTolerance = 1e-10;

}   // namespace gradbench
