// Convolution and pooling of images [..., height, width, channels]; the axes in front count the images. f32
// and f64.
#pragma once
#include <limits>

#include "tapedeck/ops/random.h"

namespace tapedeck {

/// Two numbers, for rows and for columns; one number stands for both.
struct HeightWidth {
  std::int64_t height, width;

  constexpr HeightWidth(std::int64_t both) : height(both), width(both) {}
  constexpr HeightWidth(std::int64_t h, std::int64_t w) : height(h), width(w) {}
  friend constexpr bool operator==(HeightWidth, HeightWidth) = default;
};

/// What is put around an image: valid: nothing; same: as much as makes the output's extents the image's
/// divided by the strides, rounded up, where an odd row or column goes to the end; or given numbers of rows
/// and columns.
struct Padding {
  enum Mode : std::uint8_t { valid, same, given };

  constexpr Padding(Mode m) : mode(m) {}
  constexpr Padding(std::int64_t all) : Padding(all, all, all, all) {}
  constexpr Padding(std::int64_t top_, std::int64_t bottom_, std::int64_t left_, std::int64_t right_)
      : mode(given), top(top_), bottom(bottom_), left(left_), right(right_) {}

  Mode mode;
  std::int64_t top = 0, bottom = 0, left = 0, right = 0;   // where mode is given
};

/// Three numbers, or one that stands for all.
struct DepthHeightWidth {
  std::int64_t depth, height, width;

  constexpr DepthHeightWidth(std::int64_t all) : depth(all), height(all), width(all) {}
  constexpr DepthHeightWidth(std::int64_t d, std::int64_t h, std::int64_t w)
      : depth(d), height(h), width(w) {}
  friend constexpr bool operator==(DepthHeightWidth, DepthHeightWidth) = default;
};
/// What is put around a volume: a mode, or numbers in front, behind and around each plane.
struct Padding3d {
  constexpr Padding3d(Padding::Mode mode) : plane(mode) {}
  constexpr Padding3d(std::int64_t all) : plane(all), front(all), back(all) {}
  constexpr Padding3d(std::int64_t front_, std::int64_t back_, Padding plane_)
      : plane(plane_), front(front_), back(back_) {}

  Padding plane;
  std::int64_t front = 0, back = 0;   // where the plane's mode is given
};
/// Where the channels are: the last axis of a row, an image or a volume, or the one in front of its axes of
/// space.
enum class Layout : std::uint8_t { nhwc, nchw, ndhwc = nhwc, ncdhw = nchw };

struct Conv2dOptions {
  HeightWidth strides = 1;            // from one output to the next
  HeightWidth dilation = 1;           // from one cell of the filters to the next
  Padding padding = Padding::valid;   // of zeros
  std::int64_t groups =
      1;   // the channels in and out fall into so many groups; each of those out is made of its own in
  Layout layout = Layout::nhwc;   // nchw images are transposed, there and back
};

/// Convolution (cross-correlation) of images x [..., height, width, in] with filters [rows, columns, in /
/// groups, out]; the result is [..., output height, output width, out]. Throws ShapeError where ranks or
/// channels do not fit or the filters reach over more than the padded image, ArgumentError for strides,
/// dilations and groups below 1 and negative padding.
TAPEDECK_EXPORT Tensor conv2d(const Tensor& x, const Tensor& filters, const Conv2dOptions& options = {});
/// The same where each channel has filters of its own: they are [rows, columns, in, multiplier], and the
/// result has in · multiplier channels. groups are not read.
TAPEDECK_EXPORT Tensor depthwise_conv2d(const Tensor& x, const Tensor& filters,
                                        const Conv2dOptions& options = {});

struct Conv2dTransposeOptions {
  HeightWidth strides = 1;
  HeightWidth dilation = 1;
  Padding padding = Padding::valid;
  HeightWidth size =
      0;   // of the result; 0: the least from which conv2d makes x, with same padding x's times the strides
  std::int64_t groups = 1;
  Layout layout = Layout::nhwc;
};
/// The adjoint of conv2d: images x [..., height, width, in] and filters [rows, columns, out / groups, in]
/// make [..., size, out]. Throws ShapeError where conv2d does not make x's extents from the size.
TAPEDECK_EXPORT Tensor conv2d_transpose(const Tensor& x, const Tensor& filters,
                                        const Conv2dTransposeOptions& options = {});

struct Conv1dOptions {
  std::int64_t stride = 1, dilation = 1;
  Padding padding = Padding::valid;   // given ones at left and right
  std::int64_t groups = 1;
  Layout layout = Layout::nhwc;
};
/// conv2d of rows x [..., width, in] with filters [columns, in / groups, out].
TAPEDECK_EXPORT Tensor conv1d(const Tensor& x, const Tensor& filters, const Conv1dOptions& options = {});

struct Conv3dOptions {
  DepthHeightWidth strides = 1, dilation = 1;
  Padding3d padding = Padding::valid;
  std::int64_t groups = 1;
  Layout layout = Layout::ndhwc;
};
/// Convolution of volumes x [..., depth, height, width, in] with filters [planes, rows, columns, in / groups,
/// out]. Throws as conv2d.
TAPEDECK_EXPORT Tensor conv3d(const Tensor& x, const Tensor& filters, const Conv3dOptions& options = {});

struct Conv3dTransposeOptions {
  DepthHeightWidth strides = 1, dilation = 1;
  Padding3d padding = Padding::valid;
  DepthHeightWidth size = 0;
  std::int64_t groups = 1;
  Layout layout = Layout::ndhwc;
};
/// The adjoint of conv3d; filters are [planes, rows, columns, out / groups, in].
TAPEDECK_EXPORT Tensor conv3d_transpose(const Tensor& x, const Tensor& filters,
                                        const Conv3dTransposeOptions& options = {});

/// Morphological dilation: the largest of x plus filters [rows, columns, channels] in each window of images
/// [..., height, width, channels]; the gradient goes to the first such cell. groups and layout are not read.
TAPEDECK_EXPORT Tensor dilation2d(const Tensor& x, const Tensor& filters, const Conv2dOptions& options = {});

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
