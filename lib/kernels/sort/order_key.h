// Maps elements to unsigned integers in the same order: equal elements have equal keys, and NaN of either
// sign has the largest.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tapedeck::kernels {

template <class T> using OrderKey = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T> OrderKey<T> order_key(T x) {
  using K = OrderKey<T>;
  constexpr K sign = K(1) << (8 * sizeof(K) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return std::numeric_limits<K>::max();
    const K bits = std::bit_cast<K>(x + T(0));   // -0 becomes 0
    return bits & sign ? ~bits : bits | sign;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<K>(x) ^ sign;
  } else {
    return x;
  }
}

}   // namespace tapedeck::kernels
