// Linear equations, inverses and determinants. f32, f64, c64 and c128.
// The last two axes are matrices, those before are batches; xᴴ is conjugate_transpose(x), for real matrices
// xᵀ. A matrix that holds a NaN or an infinity gives NaN. Each throws ShapeError for a rank below 2, for a
// matrix that is not square where it has to be, and for extents that BLAS cannot count.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// Which triangle of a matrix is read, and whether the matrix is read transposed, not conjugated.
struct Triangular {
  bool lower = true, transposed = false;
};

/// The lower triangular L with L Lᴴ = (x + xᴴ) / 2: of a matrix that is not symmetric, or Hermitian where it
/// is complex, that part is taken, so that the gradient is so, too. Throws ArgumentError where that is not
/// positive definite.
TAPEDECK_EXPORT Tensor cholesky(const Tensor& x);
/// y with L Lᴴ y = b, from L = cholesky(a).
TAPEDECK_EXPORT Tensor cholesky_solve(const Tensor& factor, const Tensor& b);
/// y with a y = b, or aᵀ y = b, where one triangle of a is read. Batches broadcast.
/// Throws ArgumentError for a zero on the diagonal.
TAPEDECK_EXPORT Tensor triangular_solve(const Tensor& a, const Tensor& b, Triangular options = {});
/// y with a y = b, or aᵀ y = b if transposed. Batches broadcast. Throws ArgumentError where a is singular.
TAPEDECK_EXPORT Tensor solve(const Tensor& a, const Tensor& b, bool transposed = false);
/// The inverse. Throws ArgumentError where x is singular.
TAPEDECK_EXPORT Tensor inv(const Tensor& x);
/// The determinant; 1 for a matrix of nothing. Its gradient is the matrix of cofactors, also where x is
/// singular; there the second one of a complex x throws GradientError.
TAPEDECK_EXPORT Tensor det(const Tensor& x);

/// det(x) = sign · exp(log_abs). log_abs is real; of a complex matrix sign is a complex number of
/// magnitude 1.
struct SignAndLog {
  Tensor sign, log_abs;
};
/// Of a singular matrix 0 and -inf; the gradient then throws ArgumentError.
TAPEDECK_EXPORT SignAndLog slogdet(const Tensor& x);

/// gather(x, permutation) = L U for one matrix: packed has U on and above the diagonal and L, whose diagonal
/// is 1, below.
struct Lu {
  Tensor packed, permutation;
};
/// With rows exchanged for the largest pivot; singular matrices have factors, too. permutation is i64.
/// Without a gradient.
TAPEDECK_EXPORT Lu lu(const Tensor& x);

}   // namespace tapedeck
