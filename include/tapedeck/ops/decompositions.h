// Factorisations of matrices, solutions and determinants. f32, f64, c64 and c128, but from matrix_exponential
// on f32 and f64 alone; the last two axes are matrices, those before are batches. xᴴ is
// conjugate_transpose(x), for real matrices xᵀ. A matrix that holds a NaN or an infinity gives NaN. Each
// throws ShapeError for a rank below 2, for a matrix that is not square where it has to be, and for extents
// that BLAS cannot count.
//
// Complex vectors are given up to a phase, which is chosen as it says below, and gradients are those of what
// is given: they are right for any loss, whether or not it depends on the phases.
#pragma once
#include <optional>

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

/// The elements x[i, i] of matrices, which need not be square, as a last axis. All dtypes, without a copy of
/// x.
TAPEDECK_EXPORT Tensor diagonal(const Tensor& x);
/// Their sum.
TAPEDECK_EXPORT Tensor trace(const Tensor& x);

/// gather(x, permutation) = L U for one matrix: packed has U on and above the diagonal and L, whose diagonal
/// is 1, below.
struct Lu {
  Tensor packed, permutation;
};
/// With rows exchanged for the largest pivot; singular matrices have factors, too. permutation is i64.
/// Without a gradient.
TAPEDECK_EXPORT Lu lu(const Tensor& x);

struct Qr {
  Tensor q, r;
};
/// x = q r with orthonormal columns of q and r upper triangular, with a real diagonal. For m × n matrices q
/// is m × min(m, n), or m × m if full. Differentiable where the first min(m, n) columns are independent; for
/// m > n not if full: that throws GradientError.
TAPEDECK_EXPORT Qr qr(const Tensor& x, bool full = false);

struct LeastSquares {
  double l2 = 0;      // weight of |y|²
  bool fast = true;   // by the normal equations, which square the condition of a; else by singular values,
                      // for any rank
};
/// y that minimises |a y - b|² + l2 |y|²; of several the shortest. If fast, a has full rank or l2 is
/// positive: else ArgumentError.
TAPEDECK_EXPORT Tensor lstsq(const Tensor& a, const Tensor& b, const LeastSquares& options = {});

/// x = vectors diag(values) vectorsᴴ, with real values.
struct Eigh {
  Tensor values, vectors;
};
/// Of a symmetric or Hermitian matrix, of which the lower triangle is read; so the gradient is lower
/// triangular. Values ascend; in each column of vectors the first component of the largest magnitude is
/// positive. The gradient takes no part from pairs of equal values, where it would be infinite.
TAPEDECK_EXPORT Eigh eigh(const Tensor& x);
TAPEDECK_EXPORT Tensor eigvalsh(const Tensor& x);

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

/// x = u diag(s) vh, with real s.
struct Svd {
  Tensor u, s, vh;
};
/// Singular values descend; in each column of u the first component of the largest magnitude is positive. For
/// m × n matrices and k = min(m, n), u is m × k and vh k × n, or square if full. The gradient takes no part
/// from pairs of equal values and, where m differs from n, from zeros. Full factors of matrices that are not
/// square throw GradientError for the gradient of the larger one.
TAPEDECK_EXPORT Svd svd(const Tensor& x, bool full = false);
TAPEDECK_EXPORT Tensor svdvals(const Tensor& x);

/// The pseudo-inverse (Moore & Penrose): singular values of at most rcond times the largest count as zero. By
/// default rcond is 10 max(m, n) ε.
TAPEDECK_EXPORT Tensor pinv(const Tensor& x, std::optional<double> rcond = {});
/// Σₖ xᵏ / k!.
TAPEDECK_EXPORT Tensor matrix_exponential(const Tensor& x);
/// The principal root: y y = x, with eigenvalues to the right of the imaginary axis. Throws ArgumentError
/// where x has an eigenvalue on the negative real axis or at 0.
TAPEDECK_EXPORT Tensor matrix_square_root(const Tensor& x);

/// triangular_solve with a band matrix a of which k diagonals are given: bands is [..., k, n]. If lower, a[j,
/// j - i] is bands[i, j]; else a[j, j + i] is bands[k - 1 - i, j].
TAPEDECK_EXPORT Tensor banded_triangular_solve(const Tensor& bands, const Tensor& b, Triangular options = {});
/// a x, and y with a y = b, for the tridiagonal matrix with a[j, j + 1 - i] = diagonals[i, j]: diagonals is
/// [..., 3, n], and its last element above and first element below the diagonal are not read. Batches
/// broadcast. tridiagonal_solve throws ArgumentError where a is singular.
TAPEDECK_EXPORT Tensor tridiagonal_matmul(const Tensor& diagonals, const Tensor& x);
TAPEDECK_EXPORT Tensor tridiagonal_solve(const Tensor& diagonals, const Tensor& b);

}   // namespace tapedeck
