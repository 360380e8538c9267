// Windows over images: where they read, and what they are checked for.
#include "ops/window.h"

#include <algorithm>

#include "base/format.h"

namespace tapedeck {
namespace {

using kernels::WindowAxis;

WindowAxis axis_of(std::int64_t extent, std::int64_t size, std::int64_t stride, std::int64_t dilation, Padding::Mode mode, std::int64_t before, std::int64_t after) {
  const std::int64_t reach = (size - 1) * dilation + 1;
  if (mode == Padding::same) {
    const std::int64_t outputs = (extent + stride - 1) / stride, padding = std::max<std::int64_t>((outputs - 1) * stride + reach - extent, 0);
    return {extent, size, stride, dilation, padding / 2, outputs};
  }
  const std::int64_t spare = extent + before + after - reach;
  return {extent, size, stride, dilation, before, spare < 0 ? 0 : spare / stride + 1};
}

}  // namespace

Window2d window_of(HeightWidth input, HeightWidth size, HeightWidth strides, HeightWidth dilation, const Padding& p) {
  return {axis_of(input.height, size.height, strides.height, dilation.height, p.mode, p.top, p.bottom),
          axis_of(input.width, size.width, strides.width, dilation.width, p.mode, p.left, p.right)};
}

Window3d window_of(DepthHeightWidth input, DepthHeightWidth size, DepthHeightWidth strides, DepthHeightWidth dilation, const Padding3d& p) {
  return {axis_of(input.depth, size.depth, strides.depth, dilation.depth, p.plane.mode, p.front, p.back),
          window_of({input.height, input.width}, {size.height, size.width}, {strides.height, strides.width}, {dilation.height, dilation.width}, p.plane)};
}

Shape behind(Shape front, HeightWidth image, std::int64_t channels) {
  for (const std::int64_t d : {image.height, image.width, channels}) front.push_back(d);
  return front;
}

Shape behind(Shape front, DepthHeightWidth volume, std::int64_t channels) {
  front.push_back(volume.depth);
  return behind(front, {volume.height, volume.width}, channels);
}

void require_images(const Call& c, int i, HeightWidth extents, std::int64_t channels) {
  if (c.x[i].ndim() < 3 || c.x[i].shape() != behind(front_of(c.x[i]), extents, channels))
    throw_shape_error(c, fmt::format("{} does not end in {}", c.op.args[i], behind({}, extents, channels)));
}
void require_volumes(const Call& c, int i, DepthHeightWidth extents, std::int64_t channels) {
  require_volume_rank(c, i);
  if (c.x[i].shape() != behind(front_of(c.x[i], 4), extents, channels)) throw_shape_error(c, fmt::format("{} does not end in {}", c.op.args[i], behind({}, extents, channels)));
}
void require_volume_rank(const Call& c, int i) {
  if (c.x[i].ndim() < 4) throw_shape_error(c, fmt::format("{} needs the axes depth, height, width and channels", c.op.args[i]));
}
void require_rank(const Call& c, int i) {
  if (c.x[i].ndim() < 3) throw_shape_error(c, fmt::format("{} needs the axes height, width and channels", c.op.args[i]));
}
void require_one_dtype(const Call& c) {
  require_floating(c, 0);
  if (c.x[0].dtype() != c.x[1].dtype()) throw_dtype_error(c, "dtypes differ");
}

void check_numbers(const Op& op, std::string_view name, HeightWidth v) {
  if (std::min(v.height, v.width) < 1 || std::max(v.height, v.width) > kMostCells) throw_error<ArgumentError>("{}: {} {}×{}; use 1..{}", op.name, name, v.height, v.width, kMostCells);
}
void check_numbers(const Op& op, std::string_view name, DepthHeightWidth v) {
  if (std::min({v.depth, v.height, v.width}) < 1 || std::max({v.depth, v.height, v.width}) > kMostCells)
    throw_error<ArgumentError>("{}: {} {}×{}×{}; use 1..{}", op.name, name, v.depth, v.height, v.width, kMostCells);
}
void check_padding(const Op& op, const Padding& p, HeightWidth most) {
  if (std::min({p.top, p.bottom, p.left, p.right}) < 0 || std::max(p.top, p.bottom) >= most.height || std::max(p.left, p.right) >= most.width)
    throw_error<ArgumentError>("{}: padding is {}, {}, {}, {} at top, bottom, left, right; use 0..{} for rows and 0..{} for columns", op.name, p.top, p.bottom, p.left, p.right,
                               most.height - 1, most.width - 1);
}
void check_padding(const Op& op, const Padding3d& p, DepthHeightWidth most) {
  if (std::min(p.front, p.back) < 0 || std::max(p.front, p.back) >= most.depth)
    throw_error<ArgumentError>("{}: padding is {}, {} in front and behind; use 0..{}", op.name, p.front, p.back, most.depth - 1);
  check_padding(op, p.plane, {most.height, most.width});
}

Window2d checked_window(const Call& c, std::string_view what, HeightWidth size, HeightWidth strides, HeightWidth dilation, const Padding& padding) {
  const Tensor& x = c.x[0];
  const HeightWidth input(x.shape()[x.ndim() - 3], x.shape()[x.ndim() - 2]);
  if (std::max(input.height, input.width) > kMostCells) throw_shape_error(c, "extents of 2^31 and more are too large");
  const Window2d w = window_of(input, size, strides, dilation, padding);
  if (padding.mode != Padding::same && std::min(w.rows.outputs, w.columns.outputs) == 0)
    throw_shape_error(c, fmt::format("{} larger than the padded image", what));
  return w;
}
Window3d checked_window(const Call& c, std::string_view what, DepthHeightWidth size, DepthHeightWidth strides, DepthHeightWidth dilation, const Padding3d& padding) {
  const Shape input(c.x[0].shape().dims().last(4));
  if (std::max({input[0], input[1], input[2]}) > kMostCells) throw_shape_error(c, "extents of 2^31 and more are too large");
  const Window3d w = window_of({input[0], input[1], input[2]}, size, strides, dilation, padding);
  if (padding.plane.mode != Padding::same && std::min({w.planes.outputs, w.plane.rows.outputs, w.plane.columns.outputs}) == 0)
    throw_shape_error(c, fmt::format("{} larger than the padded volume", what));
  return w;
}

}  // namespace tapedeck
