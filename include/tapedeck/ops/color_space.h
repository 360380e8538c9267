// RGB–HSV conversion. Floating-point dtypes. The last axis holds the three channels; another extent throws
// ShapeError.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Converts red, green and blue (each 0 to 1) to hue, saturation and value (each 0 to 1; Smith 1978): value
/// is the maximum, saturation 1 - minimum / maximum, hue 0 for red, 1/3 for green and 2/3 for blue. The hue
/// of grays is 0, and so is its gradient.
TAPEDECK_EXPORT Tensor rgb_to_hsv(const Tensor& x);
/// The inverse of rgb_to_hsv; hues repeat with period 1. No gradient.
TAPEDECK_EXPORT Tensor hsv_to_rgb(const Tensor& x);

}   // namespace tapedeck
