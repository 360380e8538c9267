// Linear systems, inverses and determinants of batches of matrices, f32, f64, c64 or c128. Failures name the
// first matrix without a result. The result of a matrix with a NaN or an infinity is NaN.
#pragma once
#include "kernels/linalg/matrices.h"

namespace tapedeck::kernels {

/// The lower factor of the symmetric (for complex x, Hermitian) part of x. Failure.at is the order of the
/// first leading minor that is not positive.
Failure cholesky(const Tensor& x, Tensor& y);
/// Failure.at of solve, triangular_solve and inv is the 1-based index of the zero pivot.
Failure solve(const Tensor& a, const Tensor& b, bool transposed, Tensor& y);
Failure triangular_solve(const Tensor& a, const Tensor& b, bool lower, bool transposed, Tensor& y);
Failure inv(const Tensor& x, Tensor& y);

void det(const Tensor& x, Tensor& y);
/// The determinant as sign · exp(log_abs).
void slogdet(const Tensor& x, Tensor& sign, Tensor& log_abs);
/// packed: L below the diagonal, which is 1, and U. Row i of L U is row permutation[i] of x.
void lu(const Tensor& x, Tensor& packed, Tensor& permutation);

}   // namespace tapedeck::kernels
