// Pooling of sequences, images and volumes [..., spatial extents, channels]; leading axes are batch axes.
// Floating-point dtypes.
#pragma once
#include <limits>

#include "tapedeck/ops/random.h"
#include "tapedeck/ops/window.h"

namespace tapedeck {

/// Options of pooling over N spatial axes.
template <int N> struct PoolOptions {
  /// The value of strides for adjacent windows.
  static constexpr std::int64_t kAsWindow = std::numeric_limits<std::int64_t>::min();

  ExtentsOf<N> window;
  ExtentsOf<N> strides = kAsWindow;        // by default the extents of the window
  PaddingOf<N> padding = Padding::valid;   // padded elements are ignored
};
/// Options for sequences, images and volumes.
using Pool1dOptions = PoolOptions<1>;
using Pool2dOptions = PoolOptions<2>;
using Pool3dOptions = PoolOptions<3>;

/// The maximum of each channel in each window of images [..., height, width, channels]; NaN if the window
/// contains NaN. The gradient goes to the first maximum in row-major order; in a window with NaN it is NaN.
/// Throws ShapeError if the rank is below 3 or the window is larger than the padded image or has more than
/// 2^24 elements, and ArgumentError if window or strides are below 1 or padding is as large as the window.
TAPEDECK_EXPORT Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options);
/// The mean of each channel in each window, excluding padding; each element of the window gets an equal share
/// of the gradient. Throws as max_pool2d does, but accepts windows of any size.
TAPEDECK_EXPORT Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options);

/// The maxima and their flat positions (i64): (row · width + column) · channels + channel, counted per image
/// or over all images. The position is that of the first NaN, if any, and -1 for a window of padding alone.
struct MaxAndPosition {
  Tensor y, position;
};
/// Options of max_pool_with_argmax, in addition to those of pooling.
struct MaxPoolWithArgmaxOptions {
  bool through_all_images = false;   // true: positions count over all images, not per image
};
/// max_pool2d and the positions of the maxima. Throws as max_pool2d does.
TAPEDECK_EXPORT MaxAndPosition max_pool_with_argmax(const Tensor& x, const Pool2dOptions& options,
                                                    MaxPoolWithArgmaxOptions positions = {});

/// Pooling of sequences [..., width, channels]; see max_pool2d and avg_pool2d.
TAPEDECK_EXPORT Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options);
TAPEDECK_EXPORT Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options);

/// Pooling of volumes [..., depth, height, width, channels]; see max_pool2d and avg_pool2d.
TAPEDECK_EXPORT Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options);
TAPEDECK_EXPORT Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options);

/// Fractional pooling: windows of two alternating extents reduce an image by any factor (Graham 2014).
struct FractionalPoolOptions {
  double height_ratio, width_ratio;   // image extent divided by result extent, 1 or more
  bool pseudo_random = false;         // the paper's pseudorandom windows instead of random ones
  bool overlapping = false;           // each window shares its last row and column with the next
};
/// The result and the start positions of its windows, [rows + 1] and [columns + 1] (i64), whose last entries
/// are the image's extents.
struct Fractional {
  Tensor y, row_bounds, column_bounds;
};
/// The maximum or mean of each channel in each window of images [..., height, width, channels]; the key
/// determines the windows. The gradients are those of max_pool2d and avg_pool2d. Throws ShapeError if the
/// rank is below 3, and ArgumentError if a ratio is below 1 or above the extent.
TAPEDECK_EXPORT Fractional fractional_max_pool(const Tensor& x, const FractionalPoolOptions& options,
                                               random::Key key);
TAPEDECK_EXPORT Fractional fractional_avg_pool(const Tensor& x, const FractionalPoolOptions& options,
                                               random::Key key);

}   // namespace tapedeck
