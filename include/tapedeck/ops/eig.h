// Eigenvalues and eigenvectors of general square matrices. Floating-point and complex dtypes. Matrices are in
// the last two axes; leading axes are batch axes. xᴴ is conjugate_transpose(x), which is xᵀ for real
// matrices. Results are NaN for a matrix with a NaN or infinite element. All throw ShapeError if the rank is
// below 2, if a matrix is not square, or if an extent exceeds 20000. Eigenvectors are unique only up to a
// phase, which eig fixes as stated. Gradients include this choice, so they are correct for any loss, whether
// or not it depends on the phases.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// x vectors = vectors diag(values); complex even if x is real.
struct Eig {
  Tensor values, vectors;
};
/// Eigendecomposition of a square matrix, in LAPACK's order; conjugate eigenvalues of a real matrix are
/// adjacent. Each column of vectors has norm 1, and its first component of largest magnitude is positive. The
/// gradient, real for a real matrix, omits terms from pairs of equal eigenvalues, and is unbounded near
/// defective matrices.
TAPEDECK_EXPORT Eig eig(const Tensor& x);
/// Only the eigenvalues, complex and in LAPACK's order.
TAPEDECK_EXPORT Tensor eigvals(const Tensor& x);

}   // namespace tapedeck
