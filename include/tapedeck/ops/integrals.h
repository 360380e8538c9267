// Elementwise special functions defined as integrals of elementary functions, of floating-point dtypes; f32
// is computed in f64. Operands broadcast as in ops/math.h. Outside a function's domain the result is NaN, at
// a pole it is infinite or NaN.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// Dawson's integral F(x) = exp(-x²) ∫₀ˣ exp(t²) dt (DLMF 7.2.5); its derivative is 1 - 2x F(x).
TAPEDECK_EXPORT Tensor dawsn(Operand x);
/// The exponential integral Ei(x), the principal value of ∫ eᵗ / t dt from -∞ to x; -∞ at 0.
TAPEDECK_EXPORT Tensor expint(Operand x);
/// The Fresnel integrals of sin(πt²/2) and cos(πt²/2) from 0 to x.
TAPEDECK_EXPORT Tensor fresnel_sin(Operand x);
TAPEDECK_EXPORT Tensor fresnel_cos(Operand x);
/// Spence's function ∫₁ˣ log(t) / (1 - t) dt = Li₂(1 - x), for x ≥ 0.
TAPEDECK_EXPORT Tensor spence(Operand x);

}   // namespace tapedeck
