// Elementary functions, element by element, for f32 and f64. They are within 5 units in the last place over the whole range
// of x, also for angles that are large.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

TAPEDECK_EXPORT Tensor sqrt(Operand x);
/// 1 / √x.
TAPEDECK_EXPORT Tensor rsqrt(Operand x);
TAPEDECK_EXPORT Tensor exp(Operand x);
/// exp(x) - 1 and log(1 + x), accurate near 0.
TAPEDECK_EXPORT Tensor expm1(Operand x);
TAPEDECK_EXPORT Tensor log(Operand x);
TAPEDECK_EXPORT Tensor log1p(Operand x);
/// Of angles in radians.
TAPEDECK_EXPORT Tensor sin(Operand x);
TAPEDECK_EXPORT Tensor cos(Operand x);
TAPEDECK_EXPORT Tensor tan(Operand x);
TAPEDECK_EXPORT Tensor tanh(Operand x);
/// 1 / (1 + exp(-x)).
TAPEDECK_EXPORT Tensor sigmoid(Operand x);
/// a to the power b, with broadcasting and promotion as in ops/math.h. The derivative in b is 0 where a is not positive.
TAPEDECK_EXPORT Tensor pow(Operand a, Operand b);

}  // namespace tapedeck
