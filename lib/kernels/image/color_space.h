// RGB–HSV conversion. x and y are f32 or f64, with three channels per pixel.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

void rgb_to_hsv(const Tensor& x, Tensor& y);
/// The gradient of rgb_to_hsv with respect to x. dy has x's shape, or further axes in front for several
/// cotangents.
void rgb_to_hsv_gradient(const Tensor& x, const Tensor& dy, Tensor& dx);
void hsv_to_rgb(const Tensor& x, Tensor& y);

}   // namespace tapedeck::kernels
