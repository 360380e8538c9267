// Colors in other spaces. f32 and f64.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Red, green and blue (0 to 1), the last axis of x, as hue, saturation and value (0 to 1; Smith 1978).
/// Throws ShapeError unless there are three.
TAPEDECK_EXPORT Tensor rgb_to_hsv(const Tensor& x);
/// The opposite; no gradient.
TAPEDECK_EXPORT Tensor hsv_to_rgb(const Tensor& x);

}   // namespace tapedeck
