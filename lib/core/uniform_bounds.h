// The check of the bounds of uniform random numbers, which the op and the initializer share.
#pragma once

namespace tapedeck {

/// Throws ArgumentError unless low < high, and high - low is finite.
void check_uniform_bounds(double low, double high);

}   // namespace tapedeck
