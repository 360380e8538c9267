// Eigenvalues and eigenvectors of any square matrices.
#pragma once
#include "kernels/linalg/matrices.h"

namespace tapedeck::kernels {

/// x: f32, f64, c64 or c128. values and vectors are complex; in each column of vectors the first component of
/// the largest magnitude is 1. A matrix that holds a NaN or an infinity gives NaN. Fails where LAPACK's
/// iteration does not end.
Failure eig(const Tensor& x, Tensor& values, Tensor& vectors);

}   // namespace tapedeck::kernels
