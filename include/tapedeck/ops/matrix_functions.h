// Functions of square matrices. Floating-point and complex dtypes. Matrices are in the last two axes; leading
// axes are batch axes. xᴴ is conjugate_transpose(x), which is xᵀ for real matrices. Results are NaN for a
// matrix with a NaN or infinite element. All throw ShapeError if the rank is below 2, if a matrix is not
// square, or if an extent exceeds BLAS's integer range.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The matrix exponential Σₖ xᵏ / k!, by scaling and squaring (Higham 2005).
TAPEDECK_EXPORT Tensor matrix_exponential(const Tensor& x);
/// The principal square root: y y = x, where the eigenvalues of y have positive real parts; by the Schur
/// decomposition (Björck and Hammarling 1983). Throws ArgumentError if 0 is an eigenvalue of x, or if x is
/// real and has one on the negative real axis.
TAPEDECK_EXPORT Tensor matrix_square_root(const Tensor& x);

}   // namespace tapedeck
