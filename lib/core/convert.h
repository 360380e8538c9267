// Conversion of one number to another type, with a defined result for every value.
#pragma once
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "tapedeck/dtype.h"

namespace tapedeck {

/// Complex to real takes the real part. Floating point to integer truncates and saturates; NaN becomes 0. To
/// bool: whether the value is nonzero; for complex numbers, whether either part is.
template <class To, class From> constexpr To convert(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (ComplexNumber<From> && ComplexNumber<To>) {
    return To(v);
  } else if constexpr (ComplexNumber<From>) {
    if constexpr (std::is_same_v<To, bool>)
      return v != From(0);
    else
      return convert<To>(v.real());
  } else if constexpr (ComplexNumber<To>) {
    return To(convert<typename To::value_type>(v));
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The largest To may round up to 2^n in From, hence >=.
    constexpr From lowest = static_cast<From>(std::numeric_limits<To>::min()),
                   highest = static_cast<From>(std::numeric_limits<To>::max());
    if (!(v > lowest)) return v != v ? To(0) : std::numeric_limits<To>::min();
    return v >= highest ? std::numeric_limits<To>::max() : static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

}   // namespace tapedeck
