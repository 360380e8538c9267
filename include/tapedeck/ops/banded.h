// Band and tridiagonal matrices, of which only the diagonals are stored. f32 and f64.
// The last two axes are matrices, those before are batches; xᴴ is conjugate_transpose(x), for real matrices
// xᵀ. A matrix that holds a NaN or an infinity gives NaN. Each throws ShapeError for a rank below 2, for a
// matrix that is not square where it has to be, and for extents that BLAS cannot count.
#pragma once
#include "tapedeck/ops/solve.h"

namespace tapedeck {

/// triangular_solve with a band matrix a of which k diagonals are given: bands is [..., k, n]. If lower, a[j,
/// j - i] is bands[i, j]; else a[j, j + i] is bands[k - 1 - i, j].
TAPEDECK_EXPORT Tensor banded_triangular_solve(const Tensor& bands, const Tensor& b, Triangular options = {});
/// a x, and y with a y = b, for the tridiagonal matrix with a[j, j + 1 - i] = diagonals[i, j]: diagonals is
/// [..., 3, n], and its last element above and first element below the diagonal are not read. Batches
/// broadcast. tridiagonal_solve throws ArgumentError where a is singular.
TAPEDECK_EXPORT Tensor tridiagonal_matmul(const Tensor& diagonals, const Tensor& x);
TAPEDECK_EXPORT Tensor tridiagonal_solve(const Tensor& diagonals, const Tensor& b);

}   // namespace tapedeck
