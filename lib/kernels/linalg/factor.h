// Orthogonal factorisations. In: batches of matrices, f32, f64, c64 or c128. Out: factors, and the first
// matrix for which LAPACK's iteration has not ended. A matrix that holds a NaN or an infinity gives NaN.
#pragma once
#include "kernels/linalg/matrices.h"

namespace tapedeck::kernels {

/// q has as many columns as r has rows; the diagonal of r is real.
void qr(const Tensor& x, Tensor& q, Tensor& r);
/// Of the lower triangle; values are real and ascend. In each column of vectors the first component of the
/// largest magnitude is positive.
Failure eigh(const Tensor& x, Tensor& values, Tensor& vectors);
/// u and vh are square, or min(m, n) wide and high; s is real. In each column of u the first component of the
/// largest magnitude is positive.
Failure svd(const Tensor& x, Tensor& u, Tensor& s, Tensor& vh);
/// Singular values of at most rcond times the largest count as zero.
Failure pinv(const Tensor& x, double rcond, Tensor& y);

}   // namespace tapedeck::kernels
