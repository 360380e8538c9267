// Derivatives of the incomplete gamma function in its first argument.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// y = the derivative of that order of igamma(a, x) in a; f32 or f64, of one shape.
void igamma_grad(const Tensor& a, const Tensor& x, int order, Tensor& y);

}   // namespace tapedeck::kernels
