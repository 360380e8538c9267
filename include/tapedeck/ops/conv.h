// Convolution of sequences, images and volumes [..., spatial extents, channels]; leading axes are batch axes.
// Floating-point dtypes; mixed ones are promoted, others throw DTypeError. Differentiable in x and filters.
#pragma once
#include "tapedeck/ops/window.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Options of convolutions over N spatial axes.
template <int N> struct ConvOptions {
  ExtentsOf<N> strides = 1;                // step between output positions
  ExtentsOf<N> dilation = 1;               // step between filter elements in x
  PaddingOf<N> padding = Padding::valid;   // with zeros
  std::int64_t groups = 1;        // channel groups; outputs of a group depend only on its input channels
  Layout layout = Layout::nhwc;   // of x and the result; channels first costs transposes
};
/// Options for sequences, images and volumes.
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

/// Options of transposed convolutions: the options of the convolution whose adjoint is computed, and the size
/// of the result.
template <int N> struct ConvTransposeOptions {
  ExtentsOf<N> strides = 1, dilation = 1;
  PaddingOf<N> padding = Padding::valid;
  ExtentsOf<N> size = 0;   // extents of the result; 0: the smallest that the convolution maps to x's extents;
                           // with Padding::same, x's extents times the strides
  std::int64_t groups = 1;
  Layout layout = Layout::nhwc;
};
/// Options for images and volumes.
using Conv2dTransposeOptions = ConvTransposeOptions<2>;
using Conv3dTransposeOptions = ConvTransposeOptions<3>;

/// Convolution (cross-correlation) of images x [..., height, width, in] with filters [rows, columns, in /
/// groups, out]: y[i, j, o] = Σ x[i s + r d - p, j s + c d - p, k] filters[r, c, k, o] over r, c and k, with
/// strides s, dilation d and padding p at the top and left. The result is [..., output height, output width,
/// out]. Throws ShapeError if ranks or channels do not match or the dilated filters are larger than the
/// padded image, and ArgumentError if strides, dilation or groups are below 1 or padding is negative.
TAPEDECK_EXPORT Tensor conv2d(const Tensor& x, const Tensor& filters, const Conv2dOptions& options = {});
/// The adjoint of conv2d: maps images x [..., height, width, in] with filters [rows, columns, out / groups,
/// in] to [..., size, out]. Each pixel of x adds the filters, times its value, to the result. Throws
/// ShapeError if conv2d of an image of that size does not have x's extents.
TAPEDECK_EXPORT Tensor conv2d_transpose(const Tensor& x, const Tensor& filters,
                                        const Conv2dTransposeOptions& options = {});

/// conv2d for sequences x [..., width, in] with filters [columns, in / groups, out]; the result is [...,
/// output width, out]. Throws as conv2d does.
TAPEDECK_EXPORT Tensor conv1d(const Tensor& x, const Tensor& filters, const Conv1dOptions& options = {});

/// Convolution of volumes x [..., depth, height, width, in] with filters [planes, rows, columns, in / groups,
/// out]; the result is [..., output depth, output height, output width, out]. Throws as conv2d does.
TAPEDECK_EXPORT Tensor conv3d(const Tensor& x, const Tensor& filters, const Conv3dOptions& options = {});

/// The adjoint of conv3d: maps volumes x [..., depth, height, width, in] with filters [planes, rows, columns,
/// out / groups, in] to [..., size, out]. Throws as conv2d_transpose does.
TAPEDECK_EXPORT Tensor conv3d_transpose(const Tensor& x, const Tensor& filters,
                                        const Conv3dTransposeOptions& options = {});

}   // namespace tapedeck
