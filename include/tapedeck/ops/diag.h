// Diagonals, bands and triangles of matrices, which are in the last two axes. Diagonal k holds the elements
// with column - row = k. All dtypes.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// A range of diagonals from `low` to `high`; converts from an int for a single one.
struct Diagonals {
  Diagonals(int k = 0) : low(k), high(k) {}
  Diagonals(int low, int high) : low(low), high(high) {}
  int low, high;
};

/// The end of their rows to which diagonals shorter than the longest are aligned: first for those above the
/// main diagonal, then for those below.
enum class DiagonalAlign : std::uint8_t { right_left, left_right, left_left, right_right };

/// A tensor of twice the rank with y[i…, i…] = x[i…] and 0 elsewhere.
TAPEDECK_EXPORT Tensor diag(const Tensor& x);
/// The inverse of diag: y[i…] = x[i…, i…]. Throws ShapeError unless the first half of x's axes has the same
/// extents as the second half.
TAPEDECK_EXPORT Tensor diag_part(const Tensor& x);

/// Options of matrix_diag.
struct MatrixDiagOptions {
  std::int64_t rows = -1, columns = -1;   // -1: the smallest extents that contain the diagonals
  double padding = 0;                     // value of the other elements
  DiagonalAlign align = DiagonalAlign::right_left;
};
/// Matrices [batch…, rows, columns] with the given diagonals. x is [batch…, n] for one diagonal, and [batch…,
/// high - low + 1, n] for several, highest diagonal first, where n is the length of the longest. Throws
/// ShapeError if n or the number of diagonals does not match, ArgumentError if k.low > k.high, or if rows or
/// columns is below -1.
TAPEDECK_EXPORT Tensor matrix_diag(const Tensor& x, Diagonals k = {}, const MatrixDiagOptions& options = {});
/// The diagonals of the matrices in x, in the layout that matrix_diag accepts; shorter ones are filled with
/// `padding`. Throws ShapeError if a diagonal is outside the matrix.
TAPEDECK_EXPORT Tensor matrix_diag_part(const Tensor& x, Diagonals k = {}, double padding = 0,
                                        DiagonalAlign align = DiagonalAlign::right_left);
/// x with the given diagonals replaced; `diagonal` has the layout that matrix_diag accepts. Throws ShapeError
/// for another shape or a diagonal outside the matrix, DTypeError if the dtypes differ.
TAPEDECK_EXPORT Tensor matrix_set_diag(const Tensor& x, const Tensor& diagonal, Diagonals k = {},
                                       DiagonalAlign align = DiagonalAlign::right_left);

/// x with 0 outside diagonals -lower to upper; a negative number keeps all diagonals on that side.
/// Throws ShapeError if the rank is below 2.
TAPEDECK_EXPORT Tensor band_part(const Tensor& x, std::int64_t lower, std::int64_t upper);
/// tril: x with 0 above diagonal k, which may be outside the matrix. triu: x with 0 below it. Both throw as
/// band_part does.
TAPEDECK_EXPORT Tensor tril(const Tensor& x, std::int64_t k = 0);
TAPEDECK_EXPORT Tensor triu(const Tensor& x, std::int64_t k = 0);

/// The main diagonals x[..., i, i] of matrices, which need not be square, as the last axis of the result.
/// Throws ShapeError if the rank is below 2.
TAPEDECK_EXPORT Tensor diagonal(const Tensor& x);
/// The sum of the main diagonal of each matrix. Throws ShapeError if the rank is below 2, DTypeError for i8,
/// u8 and bool.
TAPEDECK_EXPORT Tensor trace(const Tensor& x);

}   // namespace tapedeck
