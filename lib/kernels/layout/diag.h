// Diagonals and bands of matrices, which are the last two axes, of any dtype. Diagonal k has the elements
// with column - row = k; a band is a range of adjacent diagonals.
#pragma once
#include <algorithm>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// The layout of diagonals low..high of rows × columns matrices, stored as rows of `longest` elements,
/// highest diagonal first.
struct DiagonalRows {
  std::int64_t low, high, rows, columns, longest;
  // Whether diagonals shorter than their rows are left-aligned, above and below the main diagonal.
  bool left_above, left_below;

  std::int64_t count() const { return high - low + 1; }
  static std::int64_t length(std::int64_t k, std::int64_t rows, std::int64_t columns) {
    return std::max<std::int64_t>(
        std::min(rows + std::min<std::int64_t>(k, 0), columns - std::max<std::int64_t>(k, 0)), 0);
  }
  std::int64_t length(std::int64_t k) const { return length(k, rows, columns); }
};

/// Copies the diagonals of the matrices in x to the rows of y, which is [batch…, count, longest]; and back.
void take_diagonals(const Tensor& x, const DiagonalRows& d, Tensor& y);
void put_diagonals(const Tensor& x, const DiagonalRows& d, Tensor& y);

/// x where low ≤ column - row ≤ high, else 0.
void band(const Tensor& x, std::int64_t low, std::int64_t high, Tensor& y);

}   // namespace tapedeck::kernels
