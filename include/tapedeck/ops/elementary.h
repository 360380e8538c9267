// Elementwise elementary functions for f32 and f64. They are accurate to 5 units in the last place over the
// whole range of x, including large angles.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

TAPEDECK_EXPORT Tensor sqrt(Operand x);
/// 1 / √x.
TAPEDECK_EXPORT Tensor rsqrt(Operand x);
/// The real cube root, including that of negative x.
TAPEDECK_EXPORT Tensor cbrt(Operand x);
TAPEDECK_EXPORT Tensor exp(Operand x);
TAPEDECK_EXPORT Tensor exp2(Operand x);
/// exp(x) - 1 and log(1 + x), accurate near 0.
TAPEDECK_EXPORT Tensor expm1(Operand x);
TAPEDECK_EXPORT Tensor log(Operand x);
TAPEDECK_EXPORT Tensor log1p(Operand x);
TAPEDECK_EXPORT Tensor log2(Operand x);
TAPEDECK_EXPORT Tensor log10(Operand x);
/// log(eᵃ + eᵇ) without overflow, with broadcasting.
TAPEDECK_EXPORT Tensor logaddexp(Operand a, Operand b);
/// Angles are in radians.
TAPEDECK_EXPORT Tensor sin(Operand x);
TAPEDECK_EXPORT Tensor cos(Operand x);
TAPEDECK_EXPORT Tensor tan(Operand x);
/// Results are in [-π/2, π/2], [0, π] and [-π/2, π/2].
TAPEDECK_EXPORT Tensor asin(Operand x);
TAPEDECK_EXPORT Tensor acos(Operand x);
TAPEDECK_EXPORT Tensor atan(Operand x);
/// The angle of the point (b, a), in [-π, π], with broadcasting.
TAPEDECK_EXPORT Tensor atan2(Operand a, Operand b);
/// √(a² + b²) without overflow, with broadcasting; the gradient at (0, 0) is 0.
TAPEDECK_EXPORT Tensor hypot(Operand a, Operand b);
TAPEDECK_EXPORT Tensor sinh(Operand x);
TAPEDECK_EXPORT Tensor cosh(Operand x);
TAPEDECK_EXPORT Tensor tanh(Operand x);
TAPEDECK_EXPORT Tensor asinh(Operand x);
TAPEDECK_EXPORT Tensor acosh(Operand x);
TAPEDECK_EXPORT Tensor atanh(Operand x);
/// 1 / (1 + exp(-x)).
TAPEDECK_EXPORT Tensor sigmoid(Operand x);
/// log(sigmoid(x)), without underflow.
TAPEDECK_EXPORT Tensor log_sigmoid(Operand x);
/// a to the power b, with broadcasting and promotion as in ops/math.h. The derivative with respect to b is 0
/// unless a is positive.
TAPEDECK_EXPORT Tensor pow(Operand a, Operand b);
/// a·log b, a·log(1 + b) and a / b, with broadcasting. Where a is 0, the result and the gradients are 0 for
/// any b. Also for c64 and c128.
TAPEDECK_EXPORT Tensor xlogy(Operand a, Operand b);
TAPEDECK_EXPORT Tensor xlog1py(Operand a, Operand b);
TAPEDECK_EXPORT Tensor xdivy(Operand a, Operand b);

}   // namespace tapedeck
