// Colours told otherwise. In: f32 or f64, three channels each. Out: the same.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

void rgb_to_hsv(const Tensor& x, Tensor& y);
void hsv_to_rgb(const Tensor& x, Tensor& y);

}  // namespace tapedeck::kernels
