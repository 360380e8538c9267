// Convolution of sequences, images and volumes [..., spatial extents, channels]; leading axes are batch axes.
// Floating-point dtypes; mixed ones are promoted, others throw DTypeError. Differentiable in x and filters.
#pragma once
#include "tapedeck/ops/window.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Options of conv2d.
struct Conv2dOptions {
  HeightWidth strides = 1;            // step between output positions
  HeightWidth dilation = 1;           // step between filter elements in the image
  Padding padding = Padding::valid;   // with zeros
  std::int64_t groups = 1;            // channel groups; outputs of a group depend only on its input channels
  Layout layout = Layout::nhwc;       // nchw images are transposed before and after
};

/// Convolution (cross-correlation) of images x [..., height, width, in] with filters [rows, columns, in /
/// groups, out]: y[i, j, o] = Σ x[i s + r d - p, j s + c d - p, k] filters[r, c, k, o] over r, c and k, with
/// strides s, dilation d and padding p at the top and left. The result is [..., output height, output width,
/// out]. Throws ShapeError if ranks or channels do not match or the dilated filters are larger than the
/// padded image, and ArgumentError if strides, dilation or groups are below 1 or padding is negative.
TAPEDECK_EXPORT Tensor conv2d(const Tensor& x, const Tensor& filters, const Conv2dOptions& options = {});
/// Options of conv2d_transpose: those of the conv2d of which it is the adjoint, and the size of the result.
struct Conv2dTransposeOptions {
  HeightWidth strides = 1;
  HeightWidth dilation = 1;
  Padding padding = Padding::valid;
  HeightWidth size = 0;   // extents of the result; 0: the smallest for which conv2d returns x's extents; with
                          // Padding::same, x's extents times the strides
  std::int64_t groups = 1;
  Layout layout = Layout::nhwc;
};
/// The adjoint of conv2d: maps images x [..., height, width, in] with filters [rows, columns, out / groups,
/// in] to [..., size, out]: each pixel of x adds the filters, times its value, to the result. Throws
/// ShapeError if conv2d of an image of that size does not have x's extents.
TAPEDECK_EXPORT Tensor conv2d_transpose(const Tensor& x, const Tensor& filters,
                                        const Conv2dTransposeOptions& options = {});

/// Options of conv1d; those of conv2d for one spatial axis.
struct Conv1dOptions {
  std::int64_t stride = 1, dilation = 1;
  Padding padding = Padding::valid;   // explicit padding: at left and right
  std::int64_t groups = 1;
  Layout layout = Layout::nhwc;
};
/// conv2d of sequences x [..., width, in] with filters [columns, in / groups, out]; the result is [...,
/// output width, out]. Throws as conv2d does.
TAPEDECK_EXPORT Tensor conv1d(const Tensor& x, const Tensor& filters, const Conv1dOptions& options = {});

/// Options of conv3d; those of conv2d for three spatial axes.
struct Conv3dOptions {
  DepthHeightWidth strides = 1, dilation = 1;
  Padding3d padding = Padding::valid;
  std::int64_t groups = 1;
  Layout layout = Layout::ndhwc;
};
/// Convolution of volumes x [..., depth, height, width, in] with filters [planes, rows, columns, in / groups,
/// out]; the result is [..., output depth, output height, output width, out]. Throws as conv2d does.
TAPEDECK_EXPORT Tensor conv3d(const Tensor& x, const Tensor& filters, const Conv3dOptions& options = {});

/// Options of conv3d_transpose; those of conv2d_transpose for three spatial axes.
struct Conv3dTransposeOptions {
  DepthHeightWidth strides = 1, dilation = 1;
  Padding3d padding = Padding::valid;
  DepthHeightWidth size = 0;
  std::int64_t groups = 1;
  Layout layout = Layout::ndhwc;
};
/// The adjoint of conv3d: maps volumes x [..., depth, height, width, in] with filters [planes, rows, columns,
/// out / groups, in] to [..., size, out]. Throws as conv2d_transpose does.
TAPEDECK_EXPORT Tensor conv3d_transpose(const Tensor& x, const Tensor& filters,
                                        const Conv3dTransposeOptions& options = {});

}   // namespace tapedeck
