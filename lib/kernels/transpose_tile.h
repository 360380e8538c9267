// Square tiles turned over in registers. In: kTile rows. Out: their columns as rows.
#pragma once
#include <cstdint>
#include <cstring>
#include <utility>

namespace tapedeck::kernels {

/// A row of a tile is at most 64 bytes.
template <class T> inline constexpr std::int64_t kTile = sizeof(T) == 8 ? 8 : 16;

/// to[i * to_step + j] = from[j * from_step + i]. Interleaving row i with row i + n/2, log2(n) times over, is a transposition.
/// xsimd's zip_lo and zip_hi interleave within 128-bit lanes on some instruction sets and across them on others.
template <class T> void transpose_tile(const T* from, std::int64_t from_step, T* to, std::int64_t to_step) {
  constexpr std::size_t n = kTile<T>, half = n / 2;
  using Row [[gnu::vector_size(n * sizeof(T))]] = T;
  Row rows[n], next[n];
  for (std::size_t i = 0; i < n; ++i) std::memcpy(&rows[i], from + static_cast<std::int64_t>(i) * from_step, sizeof(Row));
  for (std::size_t stage = 1; stage < n; stage *= 2) {
    for (std::size_t i = 0; i < half; ++i) {
      [&]<std::size_t... k>(std::index_sequence<k...>) {
        next[2 * i] = __builtin_shufflevector(rows[i], rows[i + half], (k / 2 + k % 2 * n)...);
        next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + half], (half + k / 2 + k % 2 * n)...);
      }(std::make_index_sequence<n>());
    }
    for (std::size_t i = 0; i < n; ++i) rows[i] = next[i];
  }
  for (std::size_t i = 0; i < n; ++i) std::memcpy(to + static_cast<std::int64_t>(i) * to_step, &rows[i], sizeof(Row));
}

}  // namespace tapedeck::kernels
