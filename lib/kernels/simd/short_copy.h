// Inlined copies of a few bytes, and repeated copies of one run of contiguous elements.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tapedeck::kernels {

/// Copies `bytes` bytes, n to 2n of them, as two pieces that may overlap.
template <std::size_t n> void copy_short(const std::byte* from, std::byte* to, std::int64_t bytes) {
  struct Piece {
    std::byte b[n];
  } first, last;
  const std::int64_t second = bytes - static_cast<std::int64_t>(n);
  std::memcpy(&first, from, n);
  std::memcpy(&last, from + second, n);
  std::memcpy(to, &first, n);
  std::memcpy(to + second, &last, n);
}

/// Calls f(copy), where copy(from, to) copies `bytes` bytes: for loops over many copies of one size.
template <class F> void with_copy_of(std::int64_t bytes, F f) {
  const auto pieces_of = [&]<std::size_t n>(std::integral_constant<std::size_t, n>) {
    f([bytes](const std::byte* from, std::byte* to) { copy_short<n>(from, to, bytes); });
  };
  switch (std::bit_floor(static_cast<std::uint64_t>(bytes - 1) | 1)) {
    case 1:
      return pieces_of(std::integral_constant<std::size_t, 1>());
    case 2:
      return pieces_of(std::integral_constant<std::size_t, 2>());
    case 4:
      return pieces_of(std::integral_constant<std::size_t, 4>());
    case 8:
      return pieces_of(std::integral_constant<std::size_t, 8>());
    case 16:
      return pieces_of(std::integral_constant<std::size_t, 16>());
    case 32:
      return pieces_of(std::integral_constant<std::size_t, 32>());
    case 64:
      return pieces_of(std::integral_constant<std::size_t, 64>());
    default:
      return f([bytes](const std::byte* from, std::byte* to) {
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
      });
  }
}

/// Writes `rows` copies of a run of n elements, one after the other. Each step copies all that is written so
/// far, up to the size of the L1 cache.
template <class T> void repeat_run(const T* from, T* to, std::int64_t rows, std::int64_t n) {
  constexpr std::int64_t near = 1 << 14;   // bytes
  const std::int64_t total = rows * n,
                     most = std::max(n, near / (n * static_cast<std::int64_t>(sizeof(T))) * n);
  std::copy_n(from, n, to);
  for (std::int64_t done = n, more; done < total; done += more) {
    more = std::min({done, most, total - done});
    std::copy_n(to, more, to + done);
  }
}

}   // namespace tapedeck::kernels
