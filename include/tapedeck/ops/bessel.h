// Elementwise Bessel functions of floating-point dtypes; others throw DTypeError. f32 is computed in f64.
// Outside a function's domain the result is NaN, at a pole it is infinite.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// Modified Bessel functions of the first kind, I₀ and I₁, for any x. The suffix e stands for a factor
/// exp(-|x|), which prevents overflow. I₀' = I₁ and I₁' = I₀ - I₁ / x.
TAPEDECK_EXPORT Tensor bessel_i0(Operand x);
TAPEDECK_EXPORT Tensor bessel_i0e(Operand x);
TAPEDECK_EXPORT Tensor bessel_i1(Operand x);
TAPEDECK_EXPORT Tensor bessel_i1e(Operand x);
/// Bessel functions of the first kind, J₀ and J₁, for any x. J₀' = -J₁ and J₁' = J₀ - J₁ / x.
TAPEDECK_EXPORT Tensor bessel_j0(Operand x);
TAPEDECK_EXPORT Tensor bessel_j1(Operand x);
/// Modified Bessel functions of the second kind, K₀ and K₁, for x > 0; infinite at 0. The suffix e stands for
/// a factor exp(x), which prevents underflow. K₀' = -K₁ and K₁' = -K₀ - K₁ / x.
TAPEDECK_EXPORT Tensor bessel_k0(Operand x);
TAPEDECK_EXPORT Tensor bessel_k0e(Operand x);
TAPEDECK_EXPORT Tensor bessel_k1(Operand x);
TAPEDECK_EXPORT Tensor bessel_k1e(Operand x);
/// Bessel functions of the second kind, Y₀ and Y₁, for x > 0; -inf at 0. Y₀' = -Y₁ and Y₁' = Y₀ - Y₁ / x.
TAPEDECK_EXPORT Tensor bessel_y0(Operand x);
TAPEDECK_EXPORT Tensor bessel_y1(Operand x);

}   // namespace tapedeck
