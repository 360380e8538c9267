// Band matrices. In: their diagonals, and batches of right-hand sides or factors. Out: y, and the first
// matrix that is singular.
#pragma once
#include "kernels/linalg/matrices.h"

namespace tapedeck::kernels {

/// bands is [..., k, n], as ops/decompositions.h has them.
Failure banded_triangular_solve(const Tensor& bands, const Tensor& b, bool lower, bool transposed, Tensor& y);
/// diagonals is [..., 3, n]: above, on and below the diagonal.
void tridiagonal_matmul(const Tensor& diagonals, const Tensor& x, Tensor& y);
Failure tridiagonal_solve(const Tensor& diagonals, const Tensor& b, Tensor& y);

}   // namespace tapedeck::kernels
