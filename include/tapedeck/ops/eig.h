// Eigenvalues and eigenvectors of any square matrices. f32, f64, c64 and c128.
// The last two axes are matrices, those before are batches; xᴴ is conjugate_transpose(x), for real matrices
// xᵀ. A matrix that holds a NaN or an infinity gives NaN. Each throws ShapeError for a rank below 2, for a
// matrix that is not square where it has to be, and for extents that BLAS cannot count.
//
// Complex vectors are given up to a phase, which is chosen as each function says, and gradients are those of
// what is given: they are right for any loss, whether or not it depends on the phases.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// x vectors = vectors diag(values), complex also where x is real.
struct Eig {
  Tensor values, vectors;
};
/// Of any square matrix, in LAPACK's order: of a real matrix conjugate values stand side by side. Columns
/// of vectors have norm 1; in each, the first component of the largest magnitude is positive. The gradient
/// takes no part from pairs of equal values, and has no bound near matrices with fewer independent
/// eigenvectors than columns.
TAPEDECK_EXPORT Eig eig(const Tensor& x);
TAPEDECK_EXPORT Tensor eigvals(const Tensor& x);

}   // namespace tapedeck
