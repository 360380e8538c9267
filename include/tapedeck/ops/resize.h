// Resizing of images [..., height, width, channels]. Floating-point dtypes. Row coordinates are y, column
// coordinates x.
#pragma once
#include "tapedeck/ops/window.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// How pixel positions of output and input correspond. centres: pixel i is centered at i + 1/2. corners:
/// pixel i is at i, and the first and last pixels of both coincide. edges: pixel i is at i, and positions
/// scale by the ratio of the sizes (TensorFlow's legacy mode).
enum class Align : std::uint8_t { edges, corners, centres };

/// Nearest-neighbor interpolation to images of `size`. Like all functions here, throws ShapeError if the rank
/// is below 3 or the image is empty, and ArgumentError if a size is below 1.
TAPEDECK_EXPORT Tensor resize_nearest(const Tensor& x, HeightWidth size, Align align = Align::centres);
/// Bilinear interpolation between the four nearest pixels.
TAPEDECK_EXPORT Tensor resize_bilinear(const Tensor& x, HeightWidth size, Align align = Align::centres);
/// Cubic convolution of the sixteen nearest pixels (Keys 1981), with TensorFlow's conventions: for centres a
/// = -1/2, and pixels outside are ignored; otherwise a = -3/4, and border pixels are repeated.
TAPEDECK_EXPORT Tensor resize_bicubic(const Tensor& x, HeightWidth size, Align align = Align::centres);

/// Interpolation kernel: the weight of a pixel as a function of its distance d, in pixels. box: 1 up to 1/2.
/// triangle: 1 - d up to 1. keys_cubic: Keys 1981 with a = -1/2. mitchell_cubic: Mitchell and Netravali 1988
/// with B = C = 1/3. gaussian: exp(-2d²) up to 3/2. lanczosN: sinc(d) sinc(d / N) up to N, where sinc(d) =
/// sin(πd) / (πd). The weights of the pixels in the image are divided by their sum.
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
/// Options of scale_and_translate.
struct ScaleAndTranslateOptions {
  double scale_y = 1, scale_x = 1;           // scales the image
  double translate_y = 0, translate_x = 0;   // shifts the scaled image, in pixels
  Kernel2d kernel = Kernel2d::triangle;
  bool antialias = true;   // widen the kernel when the image is reduced
};
/// Scales the image, then translates it, in an output of the given size; 0 outside the image. Also throws
/// ArgumentError if a scale is not positive and finite or a translation is not finite.
TAPEDECK_EXPORT Tensor scale_and_translate(const Tensor& x, HeightWidth size,
                                           const ScaleAndTranslateOptions& options = {});

}   // namespace tapedeck
