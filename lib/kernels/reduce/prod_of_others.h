// The product of all other elements, for each element: the derivative of prod.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// y[…, i] = the product of all x[…, j] with j ≠ i. f32, f64, c64 or c128, of rank 1 or more. Elements may be
/// zero.
void prod_of_others(const Tensor& x, Tensor& y);

}   // namespace tapedeck::kernels
