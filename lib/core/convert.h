// Conversion of one number to another type, with a defined result for every value.
#pragma once
#include <bit>
#include <cmath>
#include <complex>
#include <concepts>
#include <limits>
#include <type_traits>

#include "tapedeck/dtype.h"

namespace tapedeck {

namespace detail {

/// Rounds v to a float whose last bit is odd unless it equals v ("round to odd"), so that rounding it again,
/// to fewer bits, yields the same as rounding v directly.
constexpr float to_odd(double v) {
  const auto f = static_cast<float>(v);
  if (f == v || v != v) return f;
  const double size = v < 0 ? -v : v;
  auto bits = std::bit_cast<std::uint32_t>(f);
  if ((f < 0 ? -f : f) > size) --bits;   // towards zero
  return std::bit_cast<float>(bits | 1);
}
/// Rounds an integer to f64 in the same way.
template <std::integral T> constexpr double to_odd(T v) {
  constexpr std::uint64_t kLost = (1u << 11) - 1;   // the bits of 64 beyond the 53 of f64
  const std::uint64_t bits = static_cast<std::uint64_t>(v), size = v < 0 ? 0 - bits : bits;
  const bool exact = size >> 53 == 0 || (size & kLost) == 0;
  const auto d = static_cast<double>(exact ? size : (size & ~kLost) | (kLost + 1));
  return v < 0 ? -d : d;
}

}   // namespace detail

/// Complex to real keeps the real part. Floating point to integer truncates and saturates; NaN becomes 0. To
/// bool: whether the value is nonzero; for complex numbers, whether either part is. To f16 and bf16: rounded
/// once.
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
  } else if constexpr (HalfNumber<To> && std::is_same_v<From, float>) {
    return To(v);
  } else if constexpr (HalfNumber<To> && std::is_same_v<From, double>) {
    return To(detail::to_odd(v));
  } else if constexpr (HalfNumber<To> && sizeof(From) == 8) {
    return To(detail::to_odd(detail::to_odd(v)));
  } else if constexpr (HalfNumber<To>) {
    return To(detail::to_odd(static_cast<double>(v)));
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
