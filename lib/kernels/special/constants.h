// Constants for special functions.
#pragma once
#include <limits>

namespace tapedeck::kernels {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(),
                        kInfinity = std::numeric_limits<double>::infinity(), kPi = 3.141592653589793;

/// For sums of terms that cancel.
using Wide = long double;
inline constexpr Wide kWidePi = 3.14159265358979323846264338327950288L;

}   // namespace tapedeck::kernels
