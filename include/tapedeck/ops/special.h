// Elementwise special functions of floating-point dtypes; f32 is computed in f64, except by erf and erfc.
// Operands broadcast as in ops/math.h. Outside a function's domain the result is NaN, at a pole it is
// infinite or NaN.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// The error function 2/√π ∫₀ˣ exp(-t²) dt, and erfc(x) = 1 - erf(x), accurate where it is small.
TAPEDECK_EXPORT Tensor erf(Operand x);
TAPEDECK_EXPORT Tensor erfc(Operand x);
/// The inverses of erf and erfc, for x in [-1, 1] and [0, 2]; ±∞ at the ends.
TAPEDECK_EXPORT Tensor erfinv(Operand x);
TAPEDECK_EXPORT Tensor erfcinv(Operand x);
/// The quantile function of the normal distribution, √2 erfinv(2x - 1), for x in [0, 1]; ±∞ at the ends.
TAPEDECK_EXPORT Tensor ndtri(Operand x);

/// log |Γ(x)|; ∞ at 0, -1, -2, …. Its derivative is digamma.
TAPEDECK_EXPORT Tensor lgamma(Operand x);
/// ψ(x) = Γ'(x) / Γ(x), the derivative of lgamma.
TAPEDECK_EXPORT Tensor digamma(Operand x);
/// The n-th derivative of digamma, for n = 0, 1, 2, …; no gradient with respect to n.
TAPEDECK_EXPORT Tensor polygamma(Operand n, Operand x);
/// The Hurwitz zeta function Σ (q + k)⁻ˢ over k = 0, 1, 2, …, for s > 1; no gradient with respect to s.
TAPEDECK_EXPORT Tensor zeta(Operand s, Operand q);
/// The regularized incomplete gamma functions P(a, x) = 1/Γ(a) ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt and Q(a, x) = 1 - P(a, x), for
/// a > 0 and x ≥ 0. Both a and x have gradients.
TAPEDECK_EXPORT Tensor igamma(Operand a, Operand x);
TAPEDECK_EXPORT Tensor igammac(Operand a, Operand x);
/// The derivative of P(a, x) with respect to a, of the given order. a and x must have the same dtype. Throws
/// ArgumentError unless order is 1 to 8.
TAPEDECK_EXPORT Tensor igamma_grad_a(const Tensor& a, const Tensor& x, int order = 1);
/// The regularized incomplete beta function 1/B(a, b) ∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt, for a, b > 0 and x in [0, 1];
/// no gradients with respect to a and b.
TAPEDECK_EXPORT Tensor betainc(Operand a, Operand b, Operand x);

}   // namespace tapedeck
