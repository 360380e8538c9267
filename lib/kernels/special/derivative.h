// Derivatives of special functions, for those whose formulas in terms of the functions cancel.
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

/// The derivative of order 1 or more; to the precision of f32 if `single`.
double derivative(SpecialFunction f, int order, double x, bool single);
/// y = that of the elements of x; f32 or f64, of one shape.
void derivative(SpecialFunction f, int order, const Tensor& x, Tensor& y);

}   // namespace tapedeck::kernels
