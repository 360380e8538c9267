// Resampling of images [batch, height, width, channels] at other positions. Floating-point dtypes. Row
// coordinates are y, column coordinates x. All throw ShapeError if shapes do not match or images are empty,
// ArgumentError if an extent of `size` is below 1, and DTypeError if dtypes differ.
#pragma once
#include "tapedeck/ops/window.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// How a position between pixels is read: the nearest pixel, or the weighted mean of the four around it.
enum class Interpolation : std::uint8_t { nearest, bilinear };
/// Options of crop_and_resize.
struct CropOptions {
  Interpolation method = Interpolation::bilinear;
  double outside = 0;   // value of pixels outside the image
};
/// Crops boxes from images x [batch, height, width, channels] and resizes each to `size`; the result is [n,
/// size, channels]. boxes [n, 4] hold y1, x1, y2, x2 as fractions of height - 1 and width - 1; box_indices
/// [n] (integers) select the image of each box. The first and last rows of a crop are at y1 and y2, a single
/// row in the middle; y1 > y2 flips the crop; columns likewise. With the bilinear method the boxes have a
/// gradient, too. Throws ShapeError if a box index is out of range.
TAPEDECK_EXPORT Tensor crop_and_resize(const Tensor& x, const Tensor& boxes, const Tensor& box_indices,
                                       HeightWidth size, const CropOptions& options = {});

/// Options of projective_transform; `outside` is the value of pixels outside the image.
struct ProjectiveOptions {
  Interpolation method = Interpolation::nearest;
  double outside = 0;
};
/// Applies projective transforms to images x [batch, height, width, channels] and returns images of the given
/// size. The rows of transforms ([8] or [batch, 8], no gradient) are a0 a1 a2 b0 b1 b2 c0 c1: output pixel
/// (x, y) is read from the input at (a0 x + a1 y + a2, b0 x + b1 y + b2) / (c0 x + c1 y + 1).
TAPEDECK_EXPORT Tensor projective_transform(const Tensor& x, const Tensor& transforms, HeightWidth size,
                                            const ProjectiveOptions& options = {});

}   // namespace tapedeck
