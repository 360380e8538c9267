// Colours told otherwise. In: f32 or f64, three channels each. Out: the same.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

void rgb_to_hsv(const Tensor& x, Tensor& y);
/// The gradient of rgb_to_hsv in x, for the cotangents dy of x's shape, or many of them in front of it.
void rgb_to_hsv_gradient(const Tensor& x, const Tensor& dy, Tensor& dx);
void hsv_to_rgb(const Tensor& x, Tensor& y);

}   // namespace tapedeck::kernels
