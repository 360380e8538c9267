// Images [batch, height, width, channels] sampled at other positions. f32 and f64. Rows are y, columns x.
#pragma once
#include "tapedeck/ops/window.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

enum class Interpolation : std::uint8_t { nearest, bilinear };
struct CropOptions {
  Interpolation method = Interpolation::bilinear;
  double outside = 0;   // the value of what lies outside the image
};
/// Parts of images x [batch, height, width, channels], all of one size: boxes [n, 4] hold y1, x1, y2, x2 as
/// shares of height - 1 and width - 1, box_indices [n] (i32 or i64) the image of each; [n, size, channels].
/// The boxes have a gradient too if the method is bilinear. Throws ShapeError for an index out of range.
TAPEDECK_EXPORT Tensor crop_and_resize(const Tensor& x, const Tensor& boxes, const Tensor& box_indices,
                                       HeightWidth size, const CropOptions& options = {});

struct ProjectiveOptions {
  Interpolation method = Interpolation::nearest;
  double outside = 0;
};
/// Images x [batch, height, width, channels] in a frame of this size, which the transform maps to them: with
/// the rows a0 a1 a2 b0 b1 b2 c0 c1 of transforms ([8] or [batch, 8], no gradient), pixel (x, y) is read at
/// (a0 x + a1 y + a2, b0 x + b1 y + b2) / (c0 x + c1 y + 1).
TAPEDECK_EXPORT Tensor projective_transform(const Tensor& x, const Tensor& transforms, HeightWidth size,
                                            const ProjectiveOptions& options = {});

}   // namespace tapedeck
