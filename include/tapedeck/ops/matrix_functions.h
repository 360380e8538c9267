// Functions of square matrices. f32 and f64.
// The last two axes are matrices, those before are batches; xᴴ is conjugate_transpose(x), for real matrices
// xᵀ. A matrix that holds a NaN or an infinity gives NaN. Each throws ShapeError for a rank below 2, for a
// matrix that is not square where it has to be, and for extents that BLAS cannot count.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Σₖ xᵏ / k!.
TAPEDECK_EXPORT Tensor matrix_exponential(const Tensor& x);
/// The principal root: y y = x, with eigenvalues to the right of the imaginary axis. Throws ArgumentError
/// where x has an eigenvalue on the negative real axis or at 0.
TAPEDECK_EXPORT Tensor matrix_square_root(const Tensor& x);

}   // namespace tapedeck
