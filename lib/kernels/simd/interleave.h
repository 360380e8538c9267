// Interleaves two to four rows into the columns of a matrix, and back, with vector shuffles.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace tapedeck::kernels {

/// The widest vectors for which one instruction shuffles the elements of two arbitrarily. For wider ones,
/// shuffles are slower, and compilers fall back to memory.
#ifdef __AVX512VL__
inline constexpr std::size_t kMixedBytes = 32;
#else
inline constexpr std::size_t kMixedBytes = 16;
#endif

/// c vectors of n lanes (elements): n elements of each of c rows, or n rows of a matrix of c columns.
template <std::size_t c, class T> struct Lanes {
  static constexpr std::size_t n = kMixedBytes / sizeof(T);
  using Vector [[gnu::vector_size(kMixedBytes)]] = T;
  Vector v[c];

  /// at(k, l): which lane, counted through all vectors, lane l of vector k is copied from.
  struct FromColumns {
    static constexpr std::size_t at(std::size_t k, std::size_t l) { return k + l * c; }
  };
  struct FromRows {
    static constexpr std::size_t at(std::size_t k, std::size_t l) {
      return (k * n + l) % c * n + (k * n + l) / c;
    }
  };

  template <class From> Lanes arranged() const {
    Lanes out;
    [&]<std::size_t... k>(std::index_sequence<k...>) { ((out.v[k] = merged<From, k, 1>(v[0])), ...); }
    (std::make_index_sequence<c>());
    return out;
  }

 private:
  // Merges the lanes that come from vector s (and, in the first step, from vector 0), then continues with the
  // next vector.
  template <class From, std::size_t k, std::size_t s> Vector merged(Vector so_far) const {
    if constexpr (s == c) {
      return so_far;
    } else {
      return merged<From, k, s + 1>([&]<std::size_t... l>(std::index_sequence<l...>) {
        return __builtin_shufflevector(so_far, v[s],
                                       (From::at(k, l) / n == s ? n + From::at(k, l) % n
                                        : s == 1                ? From::at(k, l) % n
                                                                : l)...);
      }(std::make_index_sequence<n>()));
    }
  }
};

/// to[k * to_step + i] = from[i * c + k] for i < n and k < c.
template <std::size_t c, class T>
void deinterleave(const T* from, T* to, std::int64_t to_step, std::int64_t n) {
  constexpr auto width = static_cast<std::int64_t>(Lanes<c, T>::n), count = static_cast<std::int64_t>(c);
  if (n < width) {
    for (std::int64_t k = 0; k < count; ++k)
      for (std::int64_t i = 0; i < n; ++i)
        to[k * to_step + i] = from[i * count + k];
    return;
  }
  for (std::int64_t i = 0; i < n; i += width) {
    const std::int64_t at = std::min(i, n - width);   // the last vectors overlap the previous ones
    Lanes<c, T> lanes;
    std::memcpy(lanes.v, from + at * count, sizeof lanes.v);
    lanes = lanes.template arranged<typename Lanes<c, T>::FromColumns>();
    for (std::int64_t k = 0; k < count; ++k)
      std::memcpy(to + k * to_step + at, &lanes.v[k], sizeof lanes.v[k]);
  }
}

/// to[i * c + k] = from[k * from_step + i] for i < n and k < c.
template <std::size_t c, class T>
void interleave(const T* from, std::int64_t from_step, T* to, std::int64_t n) {
  constexpr auto width = static_cast<std::int64_t>(Lanes<c, T>::n), count = static_cast<std::int64_t>(c);
  if (n < width) {
    for (std::int64_t k = 0; k < count; ++k)
      for (std::int64_t i = 0; i < n; ++i)
        to[i * count + k] = from[k * from_step + i];
    return;
  }
  for (std::int64_t i = 0; i < n; i += width) {
    const std::int64_t at = std::min(i, n - width);
    Lanes<c, T> lanes;
    for (std::int64_t k = 0; k < count; ++k)
      std::memcpy(&lanes.v[k], from + k * from_step + at, sizeof lanes.v[k]);
    lanes = lanes.template arranged<typename Lanes<c, T>::FromRows>();
    std::memcpy(to + at * count, lanes.v, sizeof lanes.v);
  }
}

}   // namespace tapedeck::kernels
