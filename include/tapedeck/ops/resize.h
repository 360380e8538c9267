// Images [..., height, width, channels] in other sizes. f32 and f64. Rows are y, columns x.
#pragma once
#include "tapedeck/ops/window.h"
#include "tapedeck/tensor.h"

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

}   // namespace tapedeck
