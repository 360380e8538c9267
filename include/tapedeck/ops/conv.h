// Convolution of rows, images and volumes [..., extents, channels]; the axes in front count them. f32 and
// f64.
#pragma once
#include "tapedeck/ops/window.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

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

}   // namespace tapedeck
