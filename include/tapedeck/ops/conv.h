// Convolution and pooling of images [..., height, width, channels]; the axes in front count the images. f32 and f64.
#pragma once
#include <limits>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// Two numbers, for rows and for columns; one number stands for both.
struct HeightWidth {
  std::int64_t height, width;

  constexpr HeightWidth(std::int64_t both) : height(both), width(both) {}
  constexpr HeightWidth(std::int64_t h, std::int64_t w) : height(h), width(w) {}
  friend constexpr bool operator==(HeightWidth, HeightWidth) = default;
};

/// What is put around an image: valid: nothing; same: as much as makes the output's extents the image's divided by the
/// strides, rounded up, where an odd row or column goes to the end; or given numbers of rows and columns.
struct Padding {
  enum Mode : std::uint8_t { valid, same, given };

  constexpr Padding(Mode m) : mode(m) {}
  constexpr Padding(std::int64_t all) : Padding(all, all, all, all) {}
  constexpr Padding(std::int64_t top_, std::int64_t bottom_, std::int64_t left_, std::int64_t right_)
      : mode(given), top(top_), bottom(bottom_), left(left_), right(right_) {}

  Mode mode;
  std::int64_t top = 0, bottom = 0, left = 0, right = 0;   // where mode is given
};

struct Conv2dOptions {
  HeightWidth strides = 1;            // from one output to the next
  HeightWidth dilation = 1;           // from one cell of the filters to the next
  Padding padding = Padding::valid;   // of zeros
};

/// Convolution (cross-correlation) of images x [..., height, width, in] with filters [rows, columns, in, out]; the result is
/// [..., output height, output width, out]. Throws ShapeError where ranks or channels do not fit or the filters reach over
/// more than the padded image, ArgumentError for strides and dilations below 1 and negative padding.
TAPEDECK_EXPORT Tensor conv2d(const Tensor& x, const Tensor& filters, const Conv2dOptions& options = {});

struct Pool2dOptions {
  static constexpr std::int64_t kAsWindow = std::numeric_limits<std::int64_t>::min();

  HeightWidth window;
  HeightWidth strides = kAsWindow;    // by default windows lie side by side
  Padding padding = Padding::valid;   // its cells never count
};

/// The largest element of each channel in each window, NaN where there is one. The gradient goes to the first such element,
/// row by row; in a window with NaN it is NaN. Throws ShapeError where the window is larger than the padded image or has more
/// than 2^24 cells, ArgumentError for windows and strides below 1 and padding as large as the window.
TAPEDECK_EXPORT Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options);
/// The mean of each channel in each window, over the elements that belong to the image. Throws as max_pool2d.
TAPEDECK_EXPORT Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options);

}  // namespace tapedeck
