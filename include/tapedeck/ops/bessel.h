// Elementwise Bessel functions for f32 and f64; f32 is computed in f64. Operands broadcast as in ops/math.h.
// Outside a function's domain the result is NaN, at a pole infinite or NaN.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

// Bessel functions of orders 0 and 1. The suffix "e" means exponentially scaled: I by exp(-|x|), K by exp(x).
// K and Y are defined for x ≥ 0.
TAPEDECK_EXPORT Tensor bessel_i0(Operand x);
TAPEDECK_EXPORT Tensor bessel_i0e(Operand x);
TAPEDECK_EXPORT Tensor bessel_i1(Operand x);
TAPEDECK_EXPORT Tensor bessel_i1e(Operand x);
TAPEDECK_EXPORT Tensor bessel_j0(Operand x);
TAPEDECK_EXPORT Tensor bessel_j1(Operand x);
TAPEDECK_EXPORT Tensor bessel_k0(Operand x);
TAPEDECK_EXPORT Tensor bessel_k0e(Operand x);
TAPEDECK_EXPORT Tensor bessel_k1(Operand x);
TAPEDECK_EXPORT Tensor bessel_k1e(Operand x);
TAPEDECK_EXPORT Tensor bessel_y0(Operand x);
TAPEDECK_EXPORT Tensor bessel_y1(Operand x);

}   // namespace tapedeck
