// Vector products.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// y = a × b for every 3 elements in turn; f32 or f64, of one shape.
void cross(const Tensor& a, const Tensor& b, Tensor& y);

}   // namespace tapedeck::kernels
