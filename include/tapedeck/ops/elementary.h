// Elementwise elementary functions of floating-point dtypes, accurate to 5 units in the last place over the
// whole range of x, including large angles; NaN outside their domain. All but cbrt, exp2, log2, log10,
// logaddexp, atan2, hypot and log_sigmoid also accept c64 and c128, and return principal values. Other dtypes
// throw DTypeError.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// √x; the derivative at 0 is infinite.
TAPEDECK_EXPORT Tensor sqrt(Operand x);
/// 1 / √x.
TAPEDECK_EXPORT Tensor rsqrt(Operand x);
/// The real cube root, also of negative x; the derivative at 0 is infinite.
TAPEDECK_EXPORT Tensor cbrt(Operand x);
/// e and 2 to the power x.
TAPEDECK_EXPORT Tensor exp(Operand x);
TAPEDECK_EXPORT Tensor exp2(Operand x);
/// exp(x) - 1, accurate near 0.
TAPEDECK_EXPORT Tensor expm1(Operand x);
/// The natural logarithm; -inf at 0.
TAPEDECK_EXPORT Tensor log(Operand x);
/// log(1 + x), accurate near 0.
TAPEDECK_EXPORT Tensor log1p(Operand x);
/// The logarithms to the bases 2 and 10; -inf at 0.
TAPEDECK_EXPORT Tensor log2(Operand x);
TAPEDECK_EXPORT Tensor log10(Operand x);
/// log(eᵃ + eᵇ) without overflow, with broadcasting.
TAPEDECK_EXPORT Tensor logaddexp(Operand a, Operand b);
/// The sine, cosine and tangent of x in radians.
TAPEDECK_EXPORT Tensor sin(Operand x);
TAPEDECK_EXPORT Tensor cos(Operand x);
TAPEDECK_EXPORT Tensor tan(Operand x);
/// The angle in radians whose sine, cosine or tangent is x, in [-π/2, π/2], [0, π] and [-π/2, π/2].
TAPEDECK_EXPORT Tensor asin(Operand x);
TAPEDECK_EXPORT Tensor acos(Operand x);
TAPEDECK_EXPORT Tensor atan(Operand x);
/// The angle of the point (b, a), in [-π, π], with broadcasting; its tangent is a / b. The gradient at (0, 0)
/// is NaN.
TAPEDECK_EXPORT Tensor atan2(Operand a, Operand b);
/// √(a² + b²) without overflow, with broadcasting; the gradient at (0, 0) is 0.
TAPEDECK_EXPORT Tensor hypot(Operand a, Operand b);
/// The hyperbolic functions (eˣ - e⁻ˣ) / 2, (eˣ + e⁻ˣ) / 2 and their quotient.
TAPEDECK_EXPORT Tensor sinh(Operand x);
TAPEDECK_EXPORT Tensor cosh(Operand x);
TAPEDECK_EXPORT Tensor tanh(Operand x);
/// The inverses of sinh, cosh and tanh: acosh ≥ 0 for x ≥ 1, atanh for -1 ≤ x ≤ 1.
TAPEDECK_EXPORT Tensor asinh(Operand x);
TAPEDECK_EXPORT Tensor acosh(Operand x);
TAPEDECK_EXPORT Tensor atanh(Operand x);
/// 1 / (1 + exp(-x)), with the derivative y (1 - y).
TAPEDECK_EXPORT Tensor sigmoid(Operand x);
/// log(sigmoid(x)), without underflow.
TAPEDECK_EXPORT Tensor log_sigmoid(Operand x);
/// a to the power b, with broadcasting and promotion as in ops/math.h; NaN for negative a unless b is a whole
/// number. The partial derivatives are b aᵇ⁻¹, which is 0 if a = b = 0, and aᵇ log a, which is defined as 0
/// unless a is positive, or complex and not 0.
TAPEDECK_EXPORT Tensor pow(Operand a, Operand b);
/// a·log b, a·log(1 + b) and a / b, with broadcasting. Where a is 0, the result and the gradients are 0 for
/// any b. Also for c64 and c128.
TAPEDECK_EXPORT Tensor xlogy(Operand a, Operand b);
TAPEDECK_EXPORT Tensor xlog1py(Operand a, Operand b);
TAPEDECK_EXPORT Tensor xdivy(Operand a, Operand b);

}   // namespace tapedeck
