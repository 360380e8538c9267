// QR, symmetric eigenvalue and singular value decompositions of batches of matrices, f32, f64, c64 or c128.
// Failures name the first matrix for which LAPACK's iteration does not converge. The results of a matrix with
// a NaN or an infinity are NaN.
#pragma once
#include "kernels/linalg/matrices.h"

namespace tapedeck::kernels {

/// q has as many columns as r has rows. The diagonal of r is real.
void qr(const Tensor& x, Tensor& q, Tensor& r);
/// Reads the lower triangle. Values are real and ascend. Each column of vectors is scaled so that the first
/// of its components of the largest magnitude is positive.
Failure eigh(const Tensor& x, Tensor& values, Tensor& vectors);
/// u and vh are square ("full"), or have min(m, n) columns and rows. s is real. Each column of u is scaled so
/// that the first of its components of the largest magnitude is positive.
Failure svd(const Tensor& x, Tensor& u, Tensor& s, Tensor& vh);
/// The pseudoinverse. Singular values up to rcond times the largest count as zero.
Failure pinv(const Tensor& x, double rcond, Tensor& y);

}   // namespace tapedeck::kernels
