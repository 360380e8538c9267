// Functions of matrices. In: batches of square matrices, f32 or f64. Out: y, and the first matrix that has no
// result. A matrix that holds a NaN or an infinity gives NaN.
#pragma once
#include "kernels/linalg/matrices.h"

namespace tapedeck::kernels {

void matrix_exponential(const Tensor& x, Tensor& y);
/// The principal root. Fails where an eigenvalue is 0 or negative.
Failure matrix_square_root(const Tensor& x, Tensor& y);
/// y with x y + y x = b. Fails where two eigenvalues of x add up to nearly 0.
Failure sylvester(const Tensor& x, const Tensor& b, Tensor& y);

}   // namespace tapedeck::kernels
