// Orthogonal factorisations. In: batches of matrices, f32 or f64. Out: factors, and the first matrix for which LAPACK's
// iteration has not ended. A matrix that holds a NaN or an infinity gives NaN.
#pragma once
#include "kernels/matrices.h"

namespace tapedeck::kernels {

/// q has as many columns as r has rows.
void qr(const Tensor& x, Tensor& q, Tensor& r);
/// Of the lower triangle; values ascend.
Failure eigh(const Tensor& x, Tensor& values, Tensor& vectors);
/// u and vh are square, or min(m, n) wide and high.
Failure svd(const Tensor& x, Tensor& u, Tensor& s, Tensor& vh);
/// Singular values of at most rcond times the largest count as zero.
Failure pinv(const Tensor& x, double rcond, Tensor& y);

}  // namespace tapedeck::kernels
