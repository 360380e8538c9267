// Solves and products with band matrices, given by their diagonals; f32, f64, c64 or c128. Solves return the
// first singular matrix of the batch.
#pragma once
#include "kernels/linalg/matrices.h"

namespace tapedeck::kernels {

/// bands is [..., k, n], laid out as in tapedeck/ops/decompositions.h.
Failure banded_triangular_solve(const Tensor& bands, const Tensor& b, bool lower, bool transposed, Tensor& y);
/// diagonals is [..., 3, n]: above, on and below the diagonal.
void tridiagonal_matmul(const Tensor& diagonals, const Tensor& x, Tensor& y);
Failure tridiagonal_solve(const Tensor& diagonals, const Tensor& b, Tensor& y);

}   // namespace tapedeck::kernels
