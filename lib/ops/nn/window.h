// Sliding windows over rows, images and volumes [..., extents, channels], for convolution, pooling and
// patches. In every op on windows, "input" means the tensor that the window slides over.
#pragma once
#include <algorithm>
#include <limits>

#include "kernels/nn/window.h"
#include "ops/infer.h"
#include "tapedeck/ops/window.h"

namespace tapedeck {

using kernels::Window2d;
using kernels::Window3d;

inline kernels::WindowAxis window_axis(std::int64_t extent, std::int64_t size, std::int64_t stride,
                                       std::int64_t dilation, Padding::Mode mode, std::int64_t before,
                                       std::int64_t after) {
  const std::int64_t reach = (size - 1) * dilation + 1;
  if (mode == Padding::same) {
    const std::int64_t outputs = (extent + stride - 1) / stride,
                       padding = std::max<std::int64_t>((outputs - 1) * stride + reach - extent, 0);
    return {extent, size, stride, dilation, padding / 2, outputs};
  }
  const std::int64_t spare = extent + before + after - reach;
  return {extent, size, stride, dilation, before, spare < 0 ? 0 : spare / stride + 1};
}
inline Window3d window_of(DepthHeightWidth input, DepthHeightWidth size, DepthHeightWidth strides,
                          DepthHeightWidth dilation, const Padding3d& p) {
  const Padding& plane = p.plane;
  return {window_axis(input.depth, size.depth, strides.depth, dilation.depth, plane.mode, p.front, p.back),
          {window_axis(input.height, size.height, strides.height, dilation.height, plane.mode, plane.top,
                       plane.bottom),
           window_axis(input.width, size.width, strides.width, dilation.width, plane.mode, plane.left,
                       plane.right)}};
}

/// A window over rows (one axis), images (two) or volumes (three).
struct WindowAttrs {
  Window3d window;
  int axes;
  std::int64_t groups = 1;   // groups of channels, in grouped convolution

  Shape inputs() const {
    return of(window.planes.extent, window.plane.rows.extent, window.plane.columns.extent);
  }
  Shape outputs() const {
    return of(window.planes.outputs, window.plane.rows.outputs, window.plane.columns.outputs);
  }
  Shape sizes() const { return of(window.planes.size, window.plane.rows.size, window.plane.columns.size); }

 private:
  Shape of(std::int64_t planes, std::int64_t rows, std::int64_t columns) const {
    const std::int64_t all[] = {planes, rows, columns};
    return Shape(std::span(all).last(static_cast<std::size_t>(axes)));
  }
};
// Conversions of options of images and rows to options of volumes.
constexpr DepthHeightWidth in_volume(HeightWidth v) { return {1, v.height, v.width}; }
constexpr Padding3d in_volume(const Padding& p) { return {0, 0, p}; }
constexpr DepthHeightWidth in_row(std::int64_t width) { return {1, 1, width}; }
// A Padding made from one number pads all four sides, but a row has only left and right.
constexpr Padding3d in_row(Padding p) {
  p.top = p.bottom = 0;
  return {0, 0, p};
}
template <int N> constexpr DepthHeightWidth numbers_in_volume(const ExtentsOf<N>& v) {
  if constexpr (N == 1)
    return in_row(v);
  else if constexpr (N == 2)
    return in_volume(v);
  else
    return v;
}
template <int N> constexpr Padding3d padding_in_volume(const PaddingOf<N>& p) {
  if constexpr (N == 1)
    return in_row(p);
  else if constexpr (N == 2)
    return in_volume(p);
  else
    return p;
}
/// Throws ArgumentError if top or bottom is padded, unless all four sides have the same padding.
void check_row_padding(std::string_view op, const Padding& p);

/// The `axes` extents that come before the last `last` axes.
DepthHeightWidth extents_of(const Tensor& x, int axes, int last);
std::string text_of(DepthHeightWidth v, int axes);
/// The shape `front` followed by these extents and channels.
Shape behind(Shape front, const Shape& extents, std::int64_t channels);
/// The shape of x without its last `ndim` axes, by default the three axes of an image.
inline Shape front_of(const Tensor& x, int ndim = 3) {
  return Shape(x.shape().dims().first(static_cast<std::size_t>(x.ndim() - ndim)));
}
/// Moves the channels from before the spatial axes to the end if `last`, otherwise back.
Tensor with_channels(const Tensor& x, int axes, bool last);
inline std::int64_t channels_of(const Tensor& x) { return x.shape()[x.ndim() - 1]; }

// These throw ShapeError or DTypeError, which names the op and its inputs.

/// Requires the last axes of input i to be these extents and channels.
void require_images(const Call& c, int i, const Shape& extents, std::int64_t channels);
/// Requires at least `axes` spatial axes and channels in input i.
void require_rank(const Call& c, int i, int axes = 2);
void require_floats(const Call& c);
/// Returns the result of op for images x without elements, if it has this shape and no elements either.
Tensor without_elements(const Op& op, const Tensor& x, const Shape& shape);

/// The kernels require extents, numbers of cells, and products of both to be below 2^31.
inline constexpr std::int64_t kMostCells = std::numeric_limits<std::int32_t>::max();

// These throw ArgumentError or ShapeError. Options are those of volumes; messages show the last `axes`
// numbers.

void check_numbers(const Op& op, std::string_view name, DepthHeightWidth v, int axes);
/// Requires each padding to be at least 0 and less than `most`.
void check_padding(const Op& op, const Padding3d& p, DepthHeightWidth most);
/// Returns the window over the images c.x[0]. Throws ShapeError if it is larger than the padded images, with
/// `what` as subject and verb: "the filters are".
WindowAttrs checked_window(const Call& c, std::string_view what, int axes, DepthHeightWidth size,
                           DepthHeightWidth strides, DepthHeightWidth dilation, const Padding3d& padding);

}   // namespace tapedeck
