// Windows over rows, images and volumes [..., extents, channels], for the tables of convolution, pooling and
// patches. Of every op on windows, the "input" is what the window slides over.
#pragma once
#include "kernels/nn/window.h"
#include "ops/infer.h"
#include "tapedeck/ops/window.h"

namespace tapedeck {

using kernels::Window2d;
using kernels::Window3d;

Window3d window_of(DepthHeightWidth input, DepthHeightWidth size, DepthHeightWidth strides,
                   DepthHeightWidth dilation, const Padding3d& padding);

/// A window over rows (one axis), images (two) or volumes (three).
struct WindowAttrs {
  Window3d window;
  int axes;
  std::int64_t groups = 1;   // of channels, where filters are for groups

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
// The options of images and of rows as those of volumes.
constexpr DepthHeightWidth in_volume(HeightWidth v) { return {1, v.height, v.width}; }
constexpr Padding3d in_volume(const Padding& p) { return {0, 0, p}; }
constexpr DepthHeightWidth in_row(std::int64_t width) { return {1, 1, width}; }
// A number pads all four sides; a row has two of them.
constexpr Padding3d in_row(Padding p) {
  p.top = p.bottom = 0;
  return {0, 0, p};
}

/// The last `axes` extents in front of `last` more axes.
DepthHeightWidth extents_of(const Tensor& x, int axes, int last);
std::string text_of(DepthHeightWidth v, int axes);
/// These extents and channels behind the axes in front.
Shape behind(Shape front, const Shape& extents, std::int64_t channels);
/// The axes in front of an image's, or in front of the last `ndim`.
inline Shape front_of(const Tensor& x, int ndim = 3) {
  return Shape(x.shape().dims().first(static_cast<std::size_t>(x.ndim() - ndim)));
}
inline std::int64_t channels_of(const Tensor& x) { return x.shape()[x.ndim() - 1]; }

// Each throws ShapeError or DTypeError, naming the op and its inputs.

/// Input i ends in these extents and channels.
void require_images(const Call& c, int i, const Shape& extents, std::int64_t channels);
/// Input i has so many axes of space, and channels.
void require_rank(const Call& c, int i, int axes = 2);
void require_floats(const Call& c);

/// Extents, numbers of cells and products of both are below 2^31 in the kernels.
inline constexpr std::int64_t kMostCells = std::numeric_limits<std::int32_t>::max();

// Each throws ArgumentError. Of volumes' options, the last `axes` numbers count.

void check_numbers(const Op& op, std::string_view name, DepthHeightWidth v, int axes);
/// Each less than these.
void check_padding(const Op& op, const Padding3d& p, DepthHeightWidth most);
/// The window over the images c.x[0]; of filters or of a pool, as `what` says. Throws ShapeError where it
/// reaches over more than the padded ones.
WindowAttrs checked_window(const Call& c, std::string_view what, int axes, DepthHeightWidth size,
                           DepthHeightWidth strides, DepthHeightWidth dilation, const Padding3d& padding);

namespace samples {
inline OwnedAttrs volume_window(DepthHeightWidth input, DepthHeightWidth size, DepthHeightWidth strides = 1,
                                const Padding3d& padding = Padding::valid, DepthHeightWidth dilation = 1,
                                std::int64_t groups = 1, int axes = 3) {
  return Attrs(WindowAttrs{window_of(input, size, strides, dilation, padding), axes, groups});
}
inline OwnedAttrs window(HeightWidth input, HeightWidth size, HeightWidth strides = 1,
                         const Padding& padding = Padding::valid, HeightWidth dilation = 1,
                         std::int64_t groups = 1) {
  return volume_window(in_volume(input), in_volume(size), in_volume(strides), in_volume(padding),
                       in_volume(dilation), groups, 2);
}
inline OwnedAttrs row_window(std::int64_t input, std::int64_t size, std::int64_t stride = 1,
                             const Padding& padding = Padding::valid, std::int64_t dilation = 1,
                             std::int64_t groups = 1) {
  return volume_window(in_row(input), in_row(size), in_row(stride), in_row(padding), in_row(dilation), groups,
                       1);
}
}   // namespace samples

}   // namespace tapedeck
