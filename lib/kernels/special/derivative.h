// Derivatives of special functions whose formulas in terms of the functions suffer from cancellation.
#pragma once
#include <cstdint>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

enum class SpecialFunction : std::uint8_t {
  bessel_i1,
  bessel_j1,
  bessel_i0e,
  bessel_i1e,
  bessel_k0e,
  bessel_k1e,
  dawsn,
  spence,
  fresnel_sin,
  fresnel_cos
};

/// The derivative of the given order, at least 1, of f at x; to the precision of f32 if `single`.
double derivative(SpecialFunction f, int order, double x, bool single);
/// y = the derivative of f at the elements of x. f32 or f64; y has the spec of x.
void derivative(SpecialFunction f, int order, const Tensor& x, Tensor& y);

}   // namespace tapedeck::kernels
