// Matrix exponential, square root and Sylvester equations, for batches of square matrices, f32, f64, c64 or
// c128. Failures name the first matrix without a result. The result of a matrix with a NaN or an infinity is
// NaN.
#pragma once
#include "kernels/linalg/matrices.h"

namespace tapedeck::kernels {

void matrix_exponential(const Tensor& x, Tensor& y);
/// The principal square root. Fails if an eigenvalue is 0 or negative.
Failure matrix_square_root(const Tensor& x, Tensor& y);
/// Solves x y + y x = b. Fails if two eigenvalues of x nearly cancel.
Failure sylvester(const Tensor& x, const Tensor& b, Tensor& y);

}   // namespace tapedeck::kernels
