// Diagonals, bands and triangles of matrices. A matrix is the last two axes; diagonal k is where column - row
// = k.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Diagonals from `low` to `high`; one of them: a number.
struct Diagonals {
  Diagonals(int k = 0) : low(k), high(k) {}
  Diagonals(int low, int high) : low(low), high(high) {}
  int low, high;
};

/// On which side diagonals that are shorter than the longest lie in their rows: those above the main one,
/// then those below.
enum class DiagonalAlign : std::uint8_t { right_left, left_right, left_left, right_right };

/// x on the main diagonal of a tensor of twice the axes, 0 elsewhere: y[i…, i…] = x[i…].
TAPEDECK_EXPORT Tensor diag(const Tensor& x);
/// The opposite, x[i…, i…], for an x of which the first half of the axes is as the second.
TAPEDECK_EXPORT Tensor diag_part(const Tensor& x);

struct MatrixDiagOptions {
  std::int64_t rows = -1, columns = -1;   // -1: as few as hold the diagonals
  double padding = 0;                     // what stands elsewhere
  DiagonalAlign align = DiagonalAlign::right_left;
};
/// Matrices [batch…, rows, columns] with x as their diagonals: x is [batch…, n] for one diagonal, and for
/// several [batch…, high - low + 1, n], the highest first, where n is the length of the longest.
TAPEDECK_EXPORT Tensor matrix_diag(const Tensor& x, Diagonals k = {}, const MatrixDiagOptions& options = {});
/// Diagonals of the matrices in x, in the form in which matrix_diag takes them; padding fills those that are
/// shorter. Throws ShapeError for a diagonal outside.
TAPEDECK_EXPORT Tensor matrix_diag_part(const Tensor& x, Diagonals k = {}, double padding = 0,
                                        DiagonalAlign align = DiagonalAlign::right_left);
/// x with these diagonals in place of its own.
TAPEDECK_EXPORT Tensor matrix_set_diag(const Tensor& x, const Tensor& diagonal, Diagonals k = {},
                                       DiagonalAlign align = DiagonalAlign::right_left);

/// x with 0 outside the diagonals from -lower to upper; a negative number stands for all on that side.
TAPEDECK_EXPORT Tensor band_part(const Tensor& x, std::int64_t lower, std::int64_t upper);
/// x with 0 above diagonal k, and below it.
TAPEDECK_EXPORT Tensor tril(const Tensor& x, std::int64_t k = 0);
TAPEDECK_EXPORT Tensor triu(const Tensor& x, std::int64_t k = 0);

/// The elements x[i, i] of matrices, which need not be square, as a last axis. All dtypes, without a copy of
/// x.
TAPEDECK_EXPORT Tensor diagonal(const Tensor& x);
/// Their sum.
TAPEDECK_EXPORT Tensor trace(const Tensor& x);

}   // namespace tapedeck
