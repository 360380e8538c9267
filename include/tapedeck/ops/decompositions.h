// Factorisations of matrices, and least squares. f32, f64, c64 and c128.
// The last two axes are matrices, those before are batches; xᴴ is conjugate_transpose(x), for real matrices
// xᵀ. A matrix that holds a NaN or an infinity gives NaN. Each throws ShapeError for a rank below 2, for a
// matrix that is not square where it has to be, and for extents that BLAS cannot count.
//
// Complex vectors are given up to a phase, which is chosen as each function says, and gradients are those of
// what is given: they are right for any loss, whether or not it depends on the phases.
#pragma once
#include <optional>

#include "tapedeck/operand.h"

namespace tapedeck {

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
}   // namespace tapedeck
