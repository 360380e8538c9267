// Images [..., height, width, channels]: other sizes, parts and colours. f32 and f64. Rows are y, columns x.
#pragma once
#include "tapedeck/ops/conv.h"

namespace tapedeck {

/// Which position of the image an output's pixel stands for: the middle of a pixel is at its index + 1/2
/// (centres), at its index (corners: the first and last pixels fall on each other), or the corners of pixels
/// count (edges, TensorFlow's old way).
enum class Align : std::uint8_t { edges, corners, centres };

/// Each pixel the nearest one of the image. Throws, as all here, ShapeError for ranks below 3 and empty
/// images, ArgumentError for sizes below 1.
TAPEDECK_EXPORT Tensor resize_nearest(const Tensor& x, HeightWidth size, Align align = Align::centres);
/// Between the four nearest pixels, by distance.
TAPEDECK_EXPORT Tensor resize_bilinear(const Tensor& x, HeightWidth size, Align align = Align::centres);
/// Keys' cubic convolution (1981) of the sixteen nearest pixels: with centres a = -1/2 and pixels outside
/// left out, else a = -3/4 and the border repeated, as TensorFlow has them.
TAPEDECK_EXPORT Tensor resize_bicubic(const Tensor& x, HeightWidth size, Align align = Align::centres);

/// Weights of pixels by their distance.
enum class Kernel2d : std::uint8_t {
  box,
  triangle,
  keys_cubic,
  mitchell_cubic,
  gaussian,
  lanczos1,
  lanczos3,
  lanczos5
};
struct ScaleAndTranslate {
  double scale_y = 1, scale_x = 1;           // of the image
  double translate_y = 0, translate_x = 0;   // of the scaled image, in pixels
  Kernel2d kernel = Kernel2d::triangle;
  bool antialias = true;   // wider kernels where the image becomes smaller
};
/// The image scaled, then moved, in a frame of this size; 0 where it does not reach.
TAPEDECK_EXPORT Tensor scale_and_translate(const Tensor& x, HeightWidth size,
                                           const ScaleAndTranslate& options = {});

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

/// Red, green and blue (0 to 1), the last axis of x, as hue, saturation and value (0 to 1; Smith 1978).
/// Throws ShapeError unless there are three.
TAPEDECK_EXPORT Tensor rgb_to_hsv(const Tensor& x);
/// The opposite; no gradient.
TAPEDECK_EXPORT Tensor hsv_to_rgb(const Tensor& x);

}   // namespace tapedeck
