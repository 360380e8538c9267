// Convolution. In: rows, images or volumes [..., extents, channels], and filters. Out: rows, images or
// volumes of other extents. A convolution is bilinear in its input and filters. It and its gradients with
// respect to these are three bilinear ops: the adjoints of each are the other two.
#include "kernels/nn/conv.h"

#include <algorithm>
#include <numeric>

#include "core/format.h"
#include "ops/axes.h"
#include "ops/nn/window.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

// Filters [sizes, in, out], where `in` counts the input channels of one group.
struct Filters {
  std::int64_t in, out;
  explicit Filters(const Tensor& f) : in(f.shape()[f.ndim() - 2]), out(channels_of(f)) {}
};
Shape front_of_conv(const Call& c, int i) { return front_of(c.x[i], c.attrs<WindowAttrs>().axes + 1); }
std::int64_t in_all(const Call& c, std::int64_t channels) {
  return Shape{channels, c.attrs<WindowAttrs>().groups}.size();
}
std::int64_t in_a_group(const Call& c, std::int64_t channels) {
  const std::int64_t groups = c.attrs<WindowAttrs>().groups;
  if (channels % groups)
    c.throw_shape_error(fmt::format("channels cannot be divided into {} groups", groups));
  return channels / groups;
}
Filters filters_of(const Call& c) {
  const auto& a = c.attrs<WindowAttrs>();
  const Shape& f = c.x[1].shape();
  require_floats(c);
  if (f.ndim() != a.axes + 2 || Shape(f.dims().first(static_cast<std::size_t>(a.axes))) != a.sizes())
    c.throw_shape_error("filters do not fit the window");
  (void)in_a_group(c, f[a.axes + 1]);
  return Filters(c.x[1]);
}

Spec infer_conv(const Call& c) {
  const auto& a = c.attrs<WindowAttrs>();
  const Filters f = filters_of(c);
  require_images(c, 0, a.inputs(), in_all(c, f.in));
  return {c.x[0].dtype(), behind(front_of_conv(c, 0), a.outputs(), f.out)};
}

Spec infer_input_gradient(const Call& c) {
  const auto& a = c.attrs<WindowAttrs>();
  const Filters f = filters_of(c);
  require_images(c, 0, a.outputs(), f.out);
  return {c.x[0].dtype(), behind(front_of_conv(c, 0), a.inputs(), in_all(c, f.in))};
}

Spec infer_filter_gradient(const Call& c) {
  const auto& a = c.attrs<WindowAttrs>();
  require_floats(c);
  require_rank(c, 0, a.axes);
  require_rank(c, 1, a.axes);
  const std::int64_t in = channels_of(c.x[0]), out = channels_of(c.x[1]);
  require_images(c, 0, a.inputs(), in);
  require_images(c, 1, a.outputs(), out);
  if (front_of_conv(c, 0) != front_of_conv(c, 1)) c.throw_shape_error("numbers of images differ");
  (void)in_a_group(c, out);
  return {c.x[0].dtype(), behind(a.sizes(), {in_a_group(c, in)}, out)};
}

kernels::Conv geometry(const Call& c, std::int64_t in, std::int64_t out) {
  const auto& a = c.attrs<WindowAttrs>();
  return {a.window, front_of_conv(c, 0).size(), in, out, a.groups};
}
void run_conv(const Call& c, std::span<Tensor> y) {
  kernels::conv(geometry(c, channels_of(c.x[0]), channels_of(y[0])), c.x[0], c.x[1], y[0]);
}
void run_input_gradient(const Call& c, std::span<Tensor> y) {
  kernels::conv_input_gradient(geometry(c, channels_of(y[0]), channels_of(c.x[0])), c.x[0], c.x[1], y[0]);
}
void run_filter_gradient(const Call& c, std::span<Tensor> y) {
  kernels::conv_filter_gradient(geometry(c, channels_of(c.x[0]), channels_of(c.x[1])), c.x[0], c.x[1], y[0]);
}

// The three bilinear products. One operand may be stacked along leading axes; the result is then stacked,
// too. The ops batch over images only, so a stack of any other operand is moved into the channels.
Tensor convolve(const WindowAttrs& a, const Tensor& x, const Tensor& filters);
Tensor input_gradient(const WindowAttrs& a, const Tensor& dy, const Tensor& filters);
Tensor filter_gradient(const WindowAttrs& a, const Tensor& x, const Tensor& dy);

// The ops cannot batch over every operand, so the jvp uses the products, which can.
template <auto product, class A, class B> constexpr Rule ring_of(A a, B b) {
  Rule rule = Rule::bilinear(a, b);
  rule.jvp = [](const Call& c, Refs dx, std::span<Tensor> dy) {
    const auto& w = c.attrs<WindowAttrs>();
    if (dx[0].defined()) dy[0] = product(w, dx[0], c.x[1]);
    if (!dx[1].defined()) return;
    const Tensor right = product(w, c.x[0], dx[1]);
    dy[0] = dy[0].defined() ? dy[0] + right : right;
  };
  return rule;
}
constexpr Rule conv_rule() {
  return ring_of<convolve>(
      [](const Call& c, const Tensor& dy) { return input_gradient(c.attrs<WindowAttrs>(), dy, c.x[1]); },
      [](const Call& c, const Tensor& dy) { return filter_gradient(c.attrs<WindowAttrs>(), c.x[0], dy); });
}
constexpr Rule input_gradient_rule() {
  return ring_of<input_gradient>(
      [](const Call& c, const Tensor& v) { return convolve(c.attrs<WindowAttrs>(), v, c.x[1]); },
      [](const Call& c, const Tensor& v) { return filter_gradient(c.attrs<WindowAttrs>(), v, c.x[0]); });
}
constexpr Rule filter_gradient_rule() {
  return ring_of<filter_gradient>(
      [](const Call& c, const Tensor& v) { return input_gradient(c.attrs<WindowAttrs>(), c.x[1], v); },
      [](const Call& c, const Tensor& v) { return convolve(c.attrs<WindowAttrs>(), c.x[0], v); });
}

constexpr Op kConv2d = {
    .name = "conv2d",
    .doc =
        "2-D convolution: y[i, j, o] = Σ x[i·s + r·d - p, j·s + c·d - p, k] filters[r, c, k, o] over r, "
        "c and k, with strides s, dilation d and padding p.",
    .tensorflow = "Conv2D",
    .args = {"x", "filters"},
    .infer = infer_conv,
    .forward = run_conv,
    .rule = conv_rule(),
};

constexpr Op kConv1d = {
    .name = "conv1d",
    .doc =
        "1-D convolution: y[i, o] = Σ x[i·s + c·d - p, k] filters[c, k, o] over c and k, with stride s, "
        "dilation d and padding p.",
    .args = {"x", "filters"},
    .infer = infer_conv,
    .forward = run_conv,
    .rule = conv_rule(),
};

constexpr Op kConv3d = {
    .name = "conv3d",
    .doc = "3-D convolution: the formula of conv2d with a third spatial axis.",
    .tensorflow = "Conv3D",
    .args = {"x", "filters"},
    .infer = infer_conv,
    .forward = run_conv,
    .rule = conv_rule(),
};

constexpr Op kConv2dTranspose = {
    .name = "conv2d_transpose",
    .doc =
        "Transposed 2-D convolution, the adjoint of conv2d: each pixel of x adds the filters, times its "
        "value, to the result.",
    .args = {"x", "filters"},
    .infer = infer_input_gradient,
    .forward = run_input_gradient,
    .rule = input_gradient_rule(),
};

constexpr Op kConv3dTranspose = {
    .name = "conv3d_transpose",
    .doc =
        "Transposed 3-D convolution, the adjoint of conv3d: each voxel of x adds the filters, times its "
        "value, to the result.",
    .args = {"x", "filters"},
    .infer = infer_input_gradient,
    .forward = run_input_gradient,
    .rule = input_gradient_rule(),
};

constexpr Op kConvInputGradient = {
    .name = "conv_input_gradient",
    .doc =
        "The adjoint of conv1d, conv2d or conv3d with respect to its input: the gradient of x from dy and "
        "the filters.",
    .tensorflow = "Conv2DBackpropInput Conv3DBackpropInputV2",
    .args = {"dy", "filters"},
    .infer = infer_input_gradient,
    .forward = run_input_gradient,
    .rule = input_gradient_rule(),
};

constexpr Op kConvFilterGradient = {
    .name = "conv_filter_gradient",
    .doc = "The adjoint of conv1d, conv2d or conv3d with respect to its filters.",
    .tensorflow = "Conv2DBackpropFilter Conv3DBackpropFilterV2",
    .args = {"x", "dy"},
    .infer = infer_filter_gradient,
    .forward = run_filter_gradient,
    .rule = filter_gradient_rule(),
};

constexpr const Op* conv_table[] = {&kConv2d,
                                    &kConv1d,
                                    &kConv3d,
                                    &kConv2dTranspose,
                                    &kConv3dTranspose,
                                    &kConvInputGradient,
                                    &kConvFilterGradient};

// Moves a leading stack into the channels of each group: elements [a, b, groups, c] become [b, groups, a, c].
// to_front is the inverse.
Tensor to_channels(const Tensor& x, std::int64_t a, std::int64_t b, std::int64_t groups, std::int64_t c,
                   const Shape& result) {
  return reshape(transpose(reshape(x, {a, b, groups, c}), {1, 2, 0, 3}), result);
}
Tensor to_front(const Tensor& x, std::int64_t a, std::int64_t b, std::int64_t groups, std::int64_t c,
                const Shape& result) {
  return reshape(transpose(reshape(x, {b, groups, a, c}), {2, 0, 1, 3}), result);
}

// The axes before the last `ndim`, and the number of tensors stacked along them.
struct Stack {
  Shape front;
  std::int64_t count;
  Stack(const Tensor& x, int ndim) : front(front_of(x, ndim)), count(front.size()) {}
  Shape operator+(const Shape& s) const {
    Shape all = front;
    for (const std::int64_t d : s)
      all.push_back(d);
    return all;
  }
};

const Op& op_over(int axes) { return axes == 1 ? kConv1d : axes == 2 ? kConv2d : kConv3d; }

Tensor convolve(const WindowAttrs& a, const Tensor& x, const Tensor& filters) {
  const Op& op = op_over(a.axes);
  if (filters.ndim() == a.axes + 2) return op(x, filters, a);
  const Stack stack(filters, a.axes + 2);
  const auto [in, out] = Filters(filters);
  const Shape images = front_of(x, a.axes + 1);
  const Tensor wide = to_channels(filters, stack.count, a.window.cells() * in, a.groups, out / a.groups,
                                  behind(a.sizes(), {in}, stack.count * out));
  return to_front(op(x, wide, a), stack.count, images.size() * a.window.outputs(), a.groups, out / a.groups,
                  stack + behind(images, a.outputs(), out));
}

Tensor input_gradient(const WindowAttrs& a, const Tensor& dy, const Tensor& filters) {
  if (filters.ndim() == a.axes + 2) return kConvInputGradient(dy, filters, a);
  const Stack stack(filters, a.axes + 2);
  const auto [in, out] = Filters(filters);
  const Shape images = front_of(dy, a.axes + 1);
  const Tensor wide = to_channels(filters, stack.count, a.window.cells(), 1, in * out,
                                  behind(a.sizes(), {stack.count * in}, out));
  return to_front(kConvInputGradient(dy, wide, a), stack.count, images.size() * a.window.pixels(), a.groups,
                  in, stack + behind(images, a.inputs(), a.groups * in));
}

Tensor filter_gradient(const WindowAttrs& a, const Tensor& x, const Tensor& dy) {
  const std::int64_t in = channels_of(x) / a.groups, out = channels_of(dy), cells = a.window.cells();
  if (x.ndim() < dy.ndim()) {
    const Stack stack(dy, x.ndim());
    const Shape images = front_of(x, a.axes + 1);
    const Tensor wide = to_channels(dy, stack.count, images.size() * a.window.outputs(), a.groups,
                                    out / a.groups, behind(images, a.outputs(), stack.count * out));
    return to_front(kConvFilterGradient(x, wide, a), stack.count, cells * in, a.groups, out / a.groups,
                    stack + behind(a.sizes(), {in}, out));
  }
  if (x.ndim() > dy.ndim()) {
    const Stack stack(x, dy.ndim());
    const Shape images = front_of(dy, a.axes + 1);
    const Tensor wide = to_channels(x, stack.count, images.size() * a.window.pixels(), a.groups, in,
                                    behind(images, a.inputs(), stack.count * a.groups * in));
    return to_front(kConvFilterGradient(wide, dy, a), stack.count, cells, 1, in * out,
                    stack + behind(a.sizes(), {in}, out));
  }
  return kConvFilterGradient(x, dy, a);
}

using Options = Conv3dTransposeOptions;   // options of all ranks

// The window of a transposed convolution, which maps x to images of the given size, by default the smallest
// possible one.
WindowAttrs window_back(const Call& c, int axes, DepthHeightWidth filters, const Options& o) {
  const DepthHeightWidth from = extents_of(c.x[0], axes, 1);
  const auto &s = o.strides, &d = o.dilation;
  if (std::max({from.depth, from.height, from.width, filters.depth, filters.height, filters.width}) >
      kMostCells / std::max({s.depth, s.height, s.width, d.depth, d.height, d.width}))
    c.throw_shape_error("extents of 2^31 and more are too large");
  const Padding& plane = o.padding.plane;
  const auto least = [&](std::int64_t n, std::int64_t size, std::int64_t stride, std::int64_t dilation,
                         std::int64_t padding) {
    return plane.mode == Padding::same
               ? n * stride
               : std::max<std::int64_t>((n - 1) * stride + (size - 1) * dilation + 1 - padding, 0);
  };
  DepthHeightWidth size = o.size;
  if (size == DepthHeightWidth(0))
    size = {least(from.depth, filters.depth, s.depth, d.depth, o.padding.front + o.padding.back),
            least(from.height, filters.height, s.height, d.height, plane.top + plane.bottom),
            least(from.width, filters.width, s.width, d.width, plane.left + plane.right)};
  if (std::min({size.depth, size.height, size.width}) < 0 ||
      std::max({size.depth, size.height, size.width}) > kMostCells)
    throw_error<ArgumentError>("{}: size is {}; use 0..{}", c.op.name, text_of(size, axes), kMostCells);
  const WindowAttrs a{window_of(size, filters, s, d, o.padding), axes, o.groups};
  const Window3d& w = a.window;
  if (const DepthHeightWidth made(w.planes.outputs, w.plane.rows.outputs, w.plane.columns.outputs);
      made != from)
    throw_error<ShapeError>("{}: conv{}d yields {} for size {}: x is {}", c.op.name, axes,
                            text_of(made, axes), text_of(size, axes), c.x[0].spec());
  return a;
}

Tensor convolution(const Op& op, int axes, bool transposed, const Tensor& x, const Tensor& filters,
                   const Options& o) {
  if (x.dtype() != filters.dtype() && is_floating(x.dtype()) && is_floating(filters.dtype()))
    return convolution(op, axes, transposed, astype(x, promote(x.dtype(), filters.dtype())),
                       astype(filters, promote(x.dtype(), filters.dtype())), o);
  const Tensor* inputs[] = {&x, &filters};
  const Call c{.op = op, .x = {inputs, 2}};
  check_numbers(op, "strides are", o.strides, axes);
  check_numbers(op, "dilation is", o.dilation, axes);
  check_padding(op, o.padding, kMostCells);
  if (o.groups < 1 || o.groups > kMostCells)
    throw_error<ArgumentError>("{}: groups is {}; use 1..{}", op.name, o.groups, kMostCells);
  require_rank(c, 0, axes);
  if (o.layout == Layout::nchw) {
    Options last = o;
    last.layout = Layout::nhwc;
    return with_channels(convolution(op, axes, transposed, with_channels(x, axes, true), filters, last), axes,
                         false);
  }
  constexpr std::string_view names[] = {"columns", "rows, columns", "planes, rows, columns"};
  if (filters.ndim() != axes + 2)
    c.throw_shape_error(fmt::format("filters need the axes {}, {}", names[axes - 1],
                                    transposed ? "out and in" : "in and out"));
  const auto [in, out] = Filters(filters);
  if (channels_of(x) % o.groups || out % o.groups)
    c.throw_shape_error(fmt::format("channels cannot be divided into {} groups", o.groups));
  const std::int64_t taken = transposed ? out : in,
                     offered = transposed ? channels_of(x) : channels_of(x) / o.groups;
  if (taken != offered) {
    const bool first = x.shape()[x.ndim() - axes - 1] == taken * (transposed ? 1 : o.groups);
    c.throw_shape_error(fmt::format("filters take {} channels, {} has {}{}", taken,
                                    o.groups > 1 && !transposed ? "a group of x" : "x", offered,
                                    first ? " in its last axis; set .layout where channels come first" : ""));
  }
  const DepthHeightWidth size = extents_of(filters, axes, 2);
  if (std::min({size.depth, size.height, size.width}) == 0) c.throw_shape_error("filters are empty");
  if (std::max({size.depth, size.height, size.width, in, out}) > kMostCells ||
      static_cast<double>(size.depth) * static_cast<double>(size.height) * static_cast<double>(size.width) *
              static_cast<double>(in) >
          kMostCells)
    c.throw_shape_error("filters of 2^31 and more are too large");
  WindowAttrs a = transposed
                      ? window_back(c, axes, size, o)
                      : checked_window(c, "the filters are", axes, size, o.strides, o.dilation, o.padding);
  a.groups = o.groups;
  return op(x, filters, a);
}

template <int N> Tensor convolution(const Tensor& x, const Tensor& filters, const ConvOptions<N>& o) {
  return convolution(op_over(N), N, false, x, filters,
                     {.strides = numbers_in_volume<N>(o.strides),
                      .dilation = numbers_in_volume<N>(o.dilation),
                      .padding = padding_in_volume<N>(o.padding),
                      .groups = o.groups,
                      .layout = o.layout});
}

}   // namespace

Tensor conv1d(const Tensor& x, const Tensor& filters, const Conv1dOptions& o) {
  check_row_padding("conv1d", o.padding);
  return convolution(x, filters, o);
}
Tensor conv2d(const Tensor& x, const Tensor& filters, const Conv2dOptions& o) {
  return convolution(x, filters, o);
}
Tensor conv3d(const Tensor& x, const Tensor& filters, const Conv3dOptions& o) {
  return convolution(x, filters, o);
}
Tensor conv2d_transpose(const Tensor& x, const Tensor& filters, const Conv2dTransposeOptions& o) {
  return convolution(kConv2dTranspose, 2, true, x, filters,
                     {.strides = in_volume(o.strides),
                      .dilation = in_volume(o.dilation),
                      .padding = in_volume(o.padding),
                      .size = o.size == HeightWidth(0) ? DepthHeightWidth(0) : in_volume(o.size),
                      .groups = o.groups,
                      .layout = o.layout});
}
Tensor conv3d_transpose(const Tensor& x, const Tensor& filters, const Conv3dTransposeOptions& o) {
  return convolution(kConv3dTranspose, 3, true, x, filters, o);
}

std::span<const Op* const> conv_ops() { return conv_table; }

}   // namespace tapedeck
