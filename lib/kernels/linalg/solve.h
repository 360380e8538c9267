// Linear equations, inverses and determinants. In: batches of matrices, f32, f64, c64 or c128. Out: y, and
// the first matrix that has no result. A matrix that holds a NaN or an infinity gives NaN.
#pragma once
#include "kernels/linalg/matrices.h"

namespace tapedeck::kernels {

/// The lower factor of the symmetric part of x, or Hermitian where x is complex. Fails at the order of the
/// first minor that is not positive.
Failure cholesky(const Tensor& x, Tensor& y);
/// Fail at the number, from 1 on, of a pivot that is 0.
Failure solve(const Tensor& a, const Tensor& b, bool transposed, Tensor& y);
Failure triangular_solve(const Tensor& a, const Tensor& b, bool lower, bool transposed, Tensor& y);
Failure inv(const Tensor& x, Tensor& y);

void det(const Tensor& x, Tensor& y);
void slogdet(const Tensor& x, Tensor& sign, Tensor& log_abs);
void lu(const Tensor& x, Tensor& packed, Tensor& permutation);

}   // namespace tapedeck::kernels
