// Diagonals and bands of matrices, the last two axes.
#pragma once
#include <algorithm>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Diagonals low..high of rows × columns matrices, in rows of `longest` elements, that of the highest
/// diagonal first.
struct DiagonalRows {
  std::int64_t low, high, rows, columns, longest;
  bool left_above,
      left_below;   // on which side of their rows shorter ones lie, above the main diagonal and below it

  std::int64_t count() const { return high - low + 1; }
  static std::int64_t length(std::int64_t k, std::int64_t rows, std::int64_t columns) {
    return std::max<std::int64_t>(
        std::min(rows + std::min<std::int64_t>(k, 0), columns - std::max<std::int64_t>(k, 0)), 0);
  }
  std::int64_t length(std::int64_t k) const { return length(k, rows, columns); }
};

/// Writes the diagonals of the matrices in x over their places in y, which is [batch…, count, longest]; and
/// back.
void take_diagonals(const Tensor& x, const DiagonalRows& d, Tensor& y);
void put_diagonals(const Tensor& x, const DiagonalRows& d, Tensor& y);

/// x where low ≤ column - row ≤ high, else 0.
void band(const Tensor& x, std::int64_t low, std::int64_t high, Tensor& y);

}   // namespace tapedeck::kernels
