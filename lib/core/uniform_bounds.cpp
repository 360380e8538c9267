#include "core/uniform_bounds.h"

#include <cmath>

#include "core/format.h"

namespace tapedeck {

void check_uniform_bounds(double low, double high) {
  if (!(low < high) || !std::isfinite(high - low))
    throw_error<ArgumentError>(
        "uniform: low must be less than high, and high - low finite: low is {}, high is {}", low, high);
}

}   // namespace tapedeck
