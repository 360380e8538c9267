// Vector (cross) products in three dimensions.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// y = a × b for each group of 3 consecutive elements; f32 or f64, of one shape.
void cross(const Tensor& a, const Tensor& b, Tensor& y);

}   // namespace tapedeck::kernels
