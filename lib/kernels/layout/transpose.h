// Matrix transposition in square tiles that fit into vector registers.
#pragma once
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/simd/interleave.h"

namespace tapedeck::kernels {

/// A row of a tile is at most one vector, and at most 16 elements.
template <class T>
inline constexpr std::int64_t kMaxTile = std::min<std::int64_t>(16, kMixedBytes / sizeof(T));

/// to[i * to_step + j] = from[j * from_step + i] for i, j < n. Interleaving row i with row i + n/2, log2(n)
/// times, transposes a tile. Uses compiler shuffles, since xsimd's zip_lo and zip_hi interleave within
/// 128-bit lanes on some instruction sets and across them on others.
template <std::size_t n, class T>
void transpose_tile(const T* from, std::int64_t from_step, T* to, std::int64_t to_step) {
  constexpr std::size_t half = n / 2;
  using Row [[gnu::vector_size(n * sizeof(T))]] = T;
  Row rows[n], next[n];
  for (std::size_t i = 0; i < n; ++i)
    std::memcpy(&rows[i], from + static_cast<std::int64_t>(i) * from_step, sizeof(Row));
  for (std::size_t stage = 1; stage < n; stage *= 2) {
    for (std::size_t i = 0; i < half; ++i) {
      [&]<std::size_t... k>(std::index_sequence<k...>) {
        next[2 * i] = __builtin_shufflevector(rows[i], rows[i + half], (k / 2 + k % 2 * n)...);
        next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + half], (half + k / 2 + k % 2 * n)...);
      }
      (std::make_index_sequence<n>());
    }
    for (std::size_t i = 0; i < n; ++i)
      rows[i] = next[i];
  }
  for (std::size_t i = 0; i < n; ++i)
    std::memcpy(to + static_cast<std::int64_t>(i) * to_step, &rows[i], sizeof(Row));
}

/// Like transpose_tile, for i < rows and j < columns, both at least n. If n does not divide them, the last
/// tiles overlap the previous ones.
template <std::size_t n, class T> void transpose_in_tiles(const T* from, std::int64_t from_step, T* to,
                                                          std::int64_t to_step, std::int64_t rows,
                                                          std::int64_t columns) {
  constexpr auto width = static_cast<std::int64_t>(n);
  for (std::int64_t i = 0; i < rows; i += width) {
    const std::int64_t row = std::min(i, rows - width);
    for (std::int64_t j = 0; j < columns; j += width) {
      const std::int64_t column = std::min(j, columns - width);
      transpose_tile<n>(from + column * from_step + row, from_step, to + row * to_step + column, to_step);
    }
  }
}

/// to[i * to_step + j] = from[j * from_step + i] for i < rows and j < columns.
template <class T> void transpose(const T* from, std::int64_t from_step, T* to, std::int64_t to_step,
                                  std::int64_t rows, std::int64_t columns) {
  if (rows == from_step || columns == to_step) {
    const auto few = [&]<std::size_t c>() {
      if (rows == c && rows == from_step) return deinterleave<c>(from, to, to_step, columns), true;
      if (columns == c && columns == to_step) return interleave<c>(from, from_step, to, rows), true;
      return false;
    };
    if (few.template operator()<2>() || few.template operator()<3>() || few.template operator()<4>()) return;
  }
  const std::int64_t least = std::min(rows, columns);
  if constexpr (kMaxTile<T> >= 16)
    if (least >= 16) return transpose_in_tiles<16>(from, from_step, to, to_step, rows, columns);
  if constexpr (kMaxTile<T> >= 8)
    if (least >= 8) return transpose_in_tiles<8>(from, from_step, to, to_step, rows, columns);
  if constexpr (kMaxTile<T> >= 4)
    if (least >= 4) return transpose_in_tiles<4>(from, from_step, to, to_step, rows, columns);
  if (least >= 2) return transpose_in_tiles<2>(from, from_step, to, to_step, rows, columns);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      to[i * to_step + j] = from[j * from_step + i];
}
/// transpose for complex numbers, element by element.
template <class T> void transpose(const std::complex<T>* from, std::int64_t from_step, std::complex<T>* to,
                                  std::int64_t to_step, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      to[i * to_step + j] = from[j * from_step + i];
}

}   // namespace tapedeck::kernels
