// Pooling of rows, images and volumes [..., extents, channels]; the axes in front count them. f32 and f64.
#pragma once
#include <limits>

#include "tapedeck/ops/random.h"
#include "tapedeck/ops/window.h"

namespace tapedeck {

struct Pool2dOptions {
  static constexpr std::int64_t kAsWindow = std::numeric_limits<std::int64_t>::min();

  HeightWidth window;
  HeightWidth strides = kAsWindow;    // by default windows lie side by side
  Padding padding = Padding::valid;   // its cells never count
};

/// The largest element of each channel in each window, NaN where there is one. The gradient goes to the first
/// such element, row by row; in a window with NaN it is NaN. Throws ShapeError where the window is larger
/// than the padded image or has more than 2^24 cells, ArgumentError for windows and strides below 1 and
/// padding as large as the window.
TAPEDECK_EXPORT Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options);
/// The mean of each channel in each window, over the elements that belong to the image. Throws as max_pool2d.
TAPEDECK_EXPORT Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options);

/// The largest elements, and where they are (i64): (row · width + column) · channels + channel, counted in
/// each image or through all of them. Of a window with NaN it is the first NaN's.
struct MaxAndPosition {
  Tensor y, position;
};
TAPEDECK_EXPORT MaxAndPosition max_pool_with_argmax(const Tensor& x, const Pool2dOptions& options,
                                                    bool through_all_images = false);

struct Pool1dOptions {
  std::int64_t window;
  std::int64_t stride = Pool2dOptions::kAsWindow;
  Padding padding = Padding::valid;   // given ones at left and right
};
/// Of rows [..., width, channels].
TAPEDECK_EXPORT Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options);
TAPEDECK_EXPORT Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options);

struct Pool3dOptions {
  DepthHeightWidth window;
  DepthHeightWidth strides = Pool2dOptions::kAsWindow;
  Padding3d padding = Padding::valid;
};
/// Of volumes [..., depth, height, width, channels].
TAPEDECK_EXPORT Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options);
TAPEDECK_EXPORT Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options);

/// Windows of two extents in turn, so that an image becomes smaller by any factor (Graham 2014).
struct FractionalOptions {
  double height_ratio, width_ratio;   // of the image to the result, 1 or more
  bool pseudo_random = false;         // the paper's pseudo-random windows instead of random ones
  bool overlapping = false;           // windows share their last row and column with the next
};
/// The result, and where its windows begin: [rows + 1] and [columns + 1] (i64), with the image's extents at
/// the end.
struct Fractional {
  Tensor y, row_bounds, column_bounds;
};
/// Of images [..., height, width, channels]. Throws ArgumentError for ratios below 1 or above the extents.
TAPEDECK_EXPORT Fractional fractional_max_pool(const Tensor& x, const FractionalOptions& options,
                                               random::Key key);
TAPEDECK_EXPORT Fractional fractional_avg_pool(const Tensor& x, const FractionalOptions& options,
                                               random::Key key);

}   // namespace tapedeck
