// Matrix factorizations and least squares. Floating-point and complex dtypes. Matrices are in the last two
// axes; leading axes are batch axes. xᴴ is conjugate_transpose(x), which is xᵀ for real matrices. Results are
// NaN for a matrix with a NaN or infinite element. All throw ShapeError if the rank is below 2, if a matrix
// that must be square is not, or if an extent exceeds BLAS's integer range; eigh, svd and pinv also if both
// extents exceed 20000. Complex vectors are unique only up to a phase, which each function fixes as stated.
// Gradients include this choice, so they are correct for any loss, whether or not it depends on the phases.
#pragma once
#include <optional>

#include "tapedeck/operand.h"

namespace tapedeck {

/// x = q r.
struct Qr {
  Tensor q, r;
};
/// Options of qr.
struct QrOptions {
  bool full = false;   // true: q is square
};
/// x = q r, where q has orthonormal columns and r is upper triangular with a real diagonal, which may have
/// negative elements. For an m × n matrix q is m × min(m, n), or m × m with options.full. Differentiable if
/// the first min(m, n) columns are linearly independent. Throws GradientError when differentiated with
/// options.full and m > n.
TAPEDECK_EXPORT Qr qr(const Tensor& x, QrOptions options = {});

/// Options of lstsq.
struct LstsqOptions {
  double l2 = 0;      // weight of the penalty |y|²
  bool fast = true;   // true: normal equations, which square the condition number of a; false: singular
                      // value decomposition, for any rank
};
/// The y [..., n, k] that minimizes |a y - b|² + l2 |y|² for a [..., m, n] and b [..., m, k]; of several, the
/// one of minimum norm. Batch axes broadcast. Differentiable in a and b. Throws ArgumentError if l2 is
/// negative and, if `fast`, unless a has full rank or l2 is positive; DTypeError if the dtypes differ.
TAPEDECK_EXPORT Tensor lstsq(const Tensor& a, const Tensor& b, const LstsqOptions& options = {});

/// x = vectors diag(values) vectorsᴴ, with real values.
struct Eigh {
  Tensor values, vectors;
};
/// Eigendecomposition of a symmetric or Hermitian matrix. Only the lower triangle is read; accordingly, the
/// gradient is lower triangular. Eigenvalues are in ascending order. In each column of vectors, the first
/// component of largest magnitude is positive. Terms of the gradient that would be infinite, from pairs of
/// equal eigenvalues, are omitted.
TAPEDECK_EXPORT Eigh eigh(const Tensor& x);
/// Only the eigenvalues, in ascending order.
TAPEDECK_EXPORT Tensor eigvalsh(const Tensor& x);

/// x = u diag(s) vh, with real s.
struct Svd {
  Tensor u, s, vh;
};
/// Options of svd.
struct SvdOptions {
  bool full = false;   // true: u and vh are square
};
/// Singular value decomposition with singular values in descending order. In each column of u, the first
/// component of largest magnitude is positive. For an m × n matrix and k = min(m, n), u is m × k and vh is k
/// × n; both are square with options.full. The gradient omits terms from pairs of equal singular values and,
/// if m ≠ n, from zero singular values. With options.full and an x that is not square, differentiating the
/// larger factor throws GradientError.
TAPEDECK_EXPORT Svd svd(const Tensor& x, SvdOptions options = {});
/// Only the singular values, in descending order.
TAPEDECK_EXPORT Tensor svdvals(const Tensor& x);

/// The Moore-Penrose pseudoinverse. Singular values of at most rcond times the largest are treated as zero.
/// rcond defaults to 10 max(m, n) ε, with ε = 2⁻⁵² for f64 and c128, else 2⁻²³. Differentiable where the rank
/// is locally constant (Golub and Pereyra 1973).
TAPEDECK_EXPORT Tensor pinv(const Tensor& x, std::optional<double> rcond = {});
}   // namespace tapedeck
