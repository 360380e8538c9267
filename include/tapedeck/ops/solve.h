// Linear systems, inverses and determinants. Floating-point and complex dtypes. Matrices are in the last two
// axes; leading axes are batch axes. xᴴ is conjugate_transpose(x), which is xᵀ for real matrices. Results are
// NaN for a matrix with a NaN or infinite element. All throw ShapeError if the rank is below 2, if a matrix
// that must be square is not, or if an extent exceeds BLAS's integer range, and DTypeError for other dtypes.
// Mixed dtypes are promoted.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// Options of triangular_solve and banded_triangular_solve.
struct TriangularSolveOptions {
  bool lower = true;          // which triangle of a is read
  bool transpose_a = false;   // solve with aᵀ instead of a (not conjugated)
};

/// The Cholesky factor: the lower triangular L with L Lᴴ = (x + xᴴ) / 2. Thus x is replaced by its Hermitian
/// part, and the gradient is Hermitian (symmetric for real x). Throws ArgumentError unless that part is
/// positive definite.
TAPEDECK_EXPORT Tensor cholesky(const Tensor& x);
/// Solves a y = b with `factor` = cholesky(a), that is L Lᴴ y = b. Batch axes broadcast. Throws ArgumentError
/// if a diagonal element is zero.
TAPEDECK_EXPORT Tensor cholesky_solve(const Tensor& factor, const Tensor& b);
/// Solves a y = b, or aᵀ y = b, reading one triangle of a; the gradient of a is 0 in the other. b is a matrix
/// of columns. Batch axes broadcast. Throws ArgumentError if a diagonal element is zero.
TAPEDECK_EXPORT Tensor triangular_solve(const Tensor& a, const Tensor& b,
                                        TriangularSolveOptions options = {});
/// Options of solve.
struct SolveOptions {
  bool transpose_a = false;   // solve with aᵀ instead of a (not conjugated)
};
/// Solves a y = b, or aᵀ y = b. b is a matrix of columns: [n, 1] for one vector. Batch axes broadcast. Throws
/// ArgumentError if a is singular.
TAPEDECK_EXPORT Tensor solve(const Tensor& a, const Tensor& b, SolveOptions options = {});
/// The inverse. Throws ArgumentError if x is singular.
TAPEDECK_EXPORT Tensor inv(const Tensor& x);
/// The determinant; 1 for a 0 × 0 matrix. Its gradient is the cofactor matrix; derivatives of any order exist
/// for singular x, too.
TAPEDECK_EXPORT Tensor det(const Tensor& x);

/// det(x) = sign · exp(log_abs). log_abs is real; for a complex matrix, sign is a complex number of magnitude
/// 1.
struct SignAndLog {
  Tensor sign, log_abs;
};
/// The sign and logarithm of the determinant, without overflow; 0 and -inf for a singular matrix, whose
/// gradient throws ArgumentError.
TAPEDECK_EXPORT SignAndLog slogdet(const Tensor& x);

/// The result of lu: gather(x, permutation) = L U for a single matrix. `packed` has U on and above the
/// diagonal and L, which has a unit diagonal, below.
struct Lu {
  Tensor packed, permutation;
};
/// The LU factorization of matrices, square or not, with partial pivoting; singular matrices have factors,
/// too. permutation is i64. No gradient.
TAPEDECK_EXPORT Lu lu(const Tensor& x);

}   // namespace tapedeck
