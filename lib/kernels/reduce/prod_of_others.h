// The product of all other elements, for each element: the derivative of prod.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// y[…, i] = the product of all x[…, j] but x[…, i]. f32 or f64, of rank 1 or more. Exact if elements are
/// zero.
void prod_of_others(const Tensor& x, Tensor& y);

}   // namespace tapedeck::kernels
