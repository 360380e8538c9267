// The median of several measurements.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace bench {

/// For an even number of measurements, the larger of the two in the middle. There must be at least one.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}   // namespace bench
