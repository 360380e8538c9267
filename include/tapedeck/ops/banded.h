// Band and tridiagonal matrices, stored by diagonals. Floating-point and complex dtypes. Matrices are in the
// last two axes; leading axes are batch axes. NaN and infinite elements propagate as in arithmetic. All throw
// ShapeError if the rank is below 2, if shapes do not match, or if an extent exceeds BLAS's integer range,
// and DTypeError for other dtypes. Mixed dtypes are promoted.
#pragma once
#include "tapedeck/ops/solve.h"

namespace tapedeck {

/// triangular_solve with a band matrix a of k diagonals, stored as bands [..., k, n]; b and the result are
/// [..., n, columns]. If options.lower, a[j, j - i] is bands[i, j]; else a[j, j + i] is bands[k - 1 - i, j].
/// Elements of bands outside a are ignored. Batch axes broadcast. Throws ArgumentError if an element of the
/// main diagonal is zero.
TAPEDECK_EXPORT Tensor banded_triangular_solve(const Tensor& bands, const Tensor& b,
                                               TriangularSolveOptions options = {});
/// tridiagonal_matmul returns a x; tridiagonal_solve returns y with a y = b. x, b and the results are [...,
/// n, columns]. The tridiagonal matrix a is stored as diagonals [..., 3, n], superdiagonal first: a[j, j + 1
/// - i] = diagonals[i, j]; the last element of the superdiagonal and the first of the subdiagonal are
/// ignored. Batch axes broadcast. tridiagonal_solve throws ArgumentError if a is singular.
TAPEDECK_EXPORT Tensor tridiagonal_matmul(const Tensor& diagonals, const Tensor& x);
TAPEDECK_EXPORT Tensor tridiagonal_solve(const Tensor& diagonals, const Tensor& b);

}   // namespace tapedeck
