// Sliding windows over images: their geometry and checks.
#include "ops/nn/window.h"

#include <algorithm>
#include <numeric>

#include "core/format.h"
#include "tapedeck/ops/array.h"
#include "tapedeck/ops/window.h"

namespace tapedeck {

Tensor with_channels(const Tensor& x, int axes, bool last) {
  std::vector<int> order(static_cast<std::size_t>(x.ndim()));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.end() - axes - 1, last ? order.end() - axes : order.end() - 1, order.end());
  return transpose(x, order);
}

DepthHeightWidth extents_of(const Tensor& x, int axes, int last) {
  std::int64_t n[] = {1, 1, 1};
  for (int i = 0; i < axes; ++i)
    n[2 - i] = x.shape()[x.ndim() - last - 1 - i];
  return {n[0], n[1], n[2]};
}

std::string text_of(DepthHeightWidth v, int axes) {
  return axes == 1   ? fmt::format("{}", v.width)
         : axes == 2 ? fmt::format("{}×{}", v.height, v.width)
                     : fmt::format("{}×{}×{}", v.depth, v.height, v.width);
}

void check_row_padding(std::string_view op, const Padding& p) {
  const bool on_all_sides = p.top == p.left && p.left == p.right;
  if (p.mode == Padding::given && (p.top != p.bottom || !(p.top == 0 || on_all_sides)))
    throw_error<ArgumentError>(
        "{}: padding is {}, {} at top and bottom, but a sequence has neither; use 0 there, or one number for "
        "both ends",
        op, p.top, p.bottom);
}

Shape behind(Shape front, const Shape& extents, std::int64_t channels) {
  for (const std::int64_t d : extents)
    front.push_back(d);
  front.push_back(channels);
  return front;
}

void require_images(const Call& c, int i, const Shape& extents, std::int64_t channels) {
  const int n = extents.ndim() + 1;
  if (c.x[i].ndim() < n || c.x[i].shape() != behind(front_of(c.x[i], n), extents, channels))
    c.throw_shape_error(
        fmt::format("the last axes of {} must be {}", c.op.args[i], behind({}, extents, channels)));
}
void require_rank(const Call& c, int i, int axes) {
  constexpr std::string_view names[] = {"width", "height, width", "depth, height, width"};
  if (c.x[i].ndim() <= axes)
    c.throw_shape_error(fmt::format("{} needs the axes {} and channels", c.op.args[i], names[axes - 1]));
}
void require_floats(const Call& c) {
  require_floating(c, 0);
  require_one_dtype(c);
}

Tensor without_elements(const Op& op, const Tensor& x, const Shape& shape) {
  const Tensor* inputs[] = {&x};
  require_floating({.op = op, .x = {inputs, 1}}, 0);
  return reshape(x, shape);
}

void check_numbers(const Op& op, std::string_view name, DepthHeightWidth v, int axes) {
  if (std::min({v.depth, v.height, v.width}) >= 1 && std::max({v.depth, v.height, v.width}) <= kMostCells)
    return;
  throw_error<ArgumentError>("{}: {} {}; use 1..{}", op.name, name, text_of(v, axes), kMostCells);
}
void check_padding(const Op& op, const Padding3d& p, DepthHeightWidth most) {
  if (std::min(p.front, p.back) < 0 || std::max(p.front, p.back) >= most.depth)
    throw_error<ArgumentError>("{}: padding is {}, {} at front and back; use 0..{}", op.name, p.front, p.back,
                               most.depth - 1);
  const auto& [mode, top, bottom, left, right] = p.plane;
  if (std::min({top, bottom, left, right}) < 0 || std::max(top, bottom) >= most.height ||
      std::max(left, right) >= most.width)
    throw_error<ArgumentError>(
        "{}: padding is {}, {}, {}, {} at top, bottom, left, right; use 0..{} for rows and 0..{} for columns",
        op.name, top, bottom, left, right, most.height - 1, most.width - 1);
}

WindowAttrs checked_window(const Call& c, std::string_view what, int axes, DepthHeightWidth size,
                           DepthHeightWidth strides, DepthHeightWidth dilation, const Padding3d& padding) {
  constexpr std::string_view names[] = {"row", "image", "volume"};
  const DepthHeightWidth from = extents_of(c.x[0], axes, 1);
  if (std::max({from.depth, from.height, from.width}) > kMostCells)
    c.throw_shape_error("extents of 2^31 and more are too large");
  const Window3d w = window_of(from, size, strides, dilation, padding);
  if (padding.plane.mode != Padding::same &&
      std::min({w.planes.outputs, w.plane.rows.outputs, w.plane.columns.outputs}) == 0)
    c.throw_shape_error(fmt::format("{} larger than the padded {}", what, names[axes - 1]));
  return {w, axes};
}

}   // namespace tapedeck
