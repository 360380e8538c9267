// Eigenvalues and eigenvectors of general square matrices.
#pragma once
#include "kernels/linalg/matrices.h"

namespace tapedeck::kernels {

/// x is f32, f64, c64 or c128; values and vectors are complex. Each column of vectors is scaled so that the
/// first of its components of the largest magnitude is 1. The results of a matrix with a NaN or an infinity
/// are NaN. Fails if LAPACK's iteration does not converge.
Failure eig(const Tensor& x, Tensor& values, Tensor& vectors);

}   // namespace tapedeck::kernels
