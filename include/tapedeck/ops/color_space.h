// RGB–HSV conversion. f32 and f64.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Converts red, green and blue (each 0 to 1) in the last axis of x to hue, saturation and value (each 0 to
/// 1; Smith 1978). Throws ShapeError unless the last axis has extent 3.
TAPEDECK_EXPORT Tensor rgb_to_hsv(const Tensor& x);
/// The inverse conversion. Not differentiable.
TAPEDECK_EXPORT Tensor hsv_to_rgb(const Tensor& x);

}   // namespace tapedeck
