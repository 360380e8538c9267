// Derivatives of the regularized incomplete gamma function with respect to its first argument.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// y = the derivative of order `order` of igamma(a, x) with respect to a; f32 or f64, of one shape.
void igamma_grad(const Tensor& a, const Tensor& x, int order, Tensor& y);

}   // namespace tapedeck::kernels
