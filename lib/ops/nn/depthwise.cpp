// Depthwise convolution, and morphological dilation.
#include <algorithm>

#include "core/format.h"
#include "kernels/nn/depthwise.h"
#include "ops/axes.h"
#include "ops/layout/take_along_axis.h"
#include "ops/nn/window.h"
#include "ops/promoted_operands.h"
#include "ops/pull_back_by_ops.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

kernels::Depthwise depthwise_of(const Call& c, const Tensor& images) {
  return {c.attrs<WindowAttrs>().window.plane, front_of(images).size(), channels_of(images)};
}

// Checks images of extents `from` and filters [rows, columns, channels]; the result has extents `to`.
Spec infer_depthwise(const Call& c, const Shape& from, const Shape& to) {
  require_floats(c);
  require_rank(c, 0);
  require_images(c, 0, from, channels_of(c.x[0]));
  if (c.x[1].shape() != behind({}, c.attrs<WindowAttrs>().sizes(), channels_of(c.x[0])))
    c.throw_shape_error("filters do not fit the window");
  return {c.x[0].dtype(), behind(front_of(c.x[0]), to, channels_of(c.x[0]))};
}
Shape inputs_of(const Call& c) { return c.attrs<WindowAttrs>().inputs(); }
Shape outputs_of(const Call& c) { return c.attrs<WindowAttrs>().outputs(); }

// With one filter per channel, the adjoints of each of these three bilinear products are the other two.
Tensor depthwise(const WindowAttrs& a, const Tensor& x, const Tensor& filters);
Tensor depthwise_input_gradient(const WindowAttrs& a, const Tensor& dy, const Tensor& filters);
Tensor depthwise_filter_gradient(const WindowAttrs& a, const Tensor& x, const Tensor& dy);

struct DepthwisePositions {
  Tensor of_x, of_filters;
};
DepthwisePositions dilation_positions(const Call& c);

constexpr Op kDepthwiseConv2d = {
    .name = "depthwise_conv2d",
    .doc =
        "2-D convolution with separate filters for each channel: y[i, j, k] = Σ x[i·s + r·d - p, j·s + "
        "c·d - p, k] filters[r, c, k] over r and c, with strides s, dilation d and padding p.",
    .tensorflow = "DepthwiseConv2dNative",
    .args = {"x", "filters"},
    .infer = [](const Call& c) { return infer_depthwise(c, inputs_of(c), outputs_of(c)); },
    .forward = [](const Call& c,
                  std::span<Tensor> y) { kernels::depthwise(depthwise_of(c, c.x[0]), c.x[0], c.x[1], y[0]); },
    .rule = unstacked(Rule::bilinear(
        [](const Call& c, const Tensor& dy) {
          return depthwise_input_gradient(c.attrs<WindowAttrs>(), dy, c.x[1]);
        },
        [](const Call& c, const Tensor& dy) {
          return depthwise_filter_gradient(c.attrs<WindowAttrs>(), c.x[0], dy);
        })),
};

constexpr Op kDepthwiseConv2dInputGradient = {
    .name = "depthwise_conv2d_input_gradient",
    .doc = "The adjoint of depthwise_conv2d with respect to its input.",
    .tensorflow = "DepthwiseConv2dNativeBackpropInput",
    .args = {"dy", "filters"},
    .infer = [](const Call& c) { return infer_depthwise(c, outputs_of(c), inputs_of(c)); },
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::depthwise_input_gradient(depthwise_of(c, c.x[0]), c.x[0], c.x[1], y[0]);
        },
    .rule = unstacked(Rule::bilinear(
        [](const Call& c, const Tensor& v) { return depthwise(c.attrs<WindowAttrs>(), v, c.x[1]); },
        [](const Call& c, const Tensor& v) {
          return depthwise_filter_gradient(c.attrs<WindowAttrs>(), v, c.x[0]);
        })),
};

constexpr Op kDepthwiseConv2dFilterGradient = {
    .name = "depthwise_conv2d_filter_gradient",
    .doc = "The adjoint of depthwise_conv2d with respect to its filters.",
    .tensorflow = "DepthwiseConv2dNativeBackpropFilter",
    .args = {"x", "dy"},
    .infer = [](const Call& c) -> Spec {
      require_floats(c);
      require_rank(c, 0);
      require_images(c, 0, inputs_of(c), channels_of(c.x[0]));
      require_images(c, 1, outputs_of(c), channels_of(c.x[0]));
      if (front_of(c.x[0]) != front_of(c.x[1])) c.throw_shape_error("numbers of images differ");
      return {c.x[0].dtype(), behind({}, c.attrs<WindowAttrs>().sizes(), channels_of(c.x[0]))};
    },
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::depthwise_filter_gradient(depthwise_of(c, c.x[0]), c.x[0], c.x[1], y[0]);
        },
    .rule = unstacked(Rule::bilinear(
        [](const Call& c, const Tensor& v) {
          return depthwise_input_gradient(c.attrs<WindowAttrs>(), c.x[1], v);
        },
        [](const Call& c, const Tensor& v) { return depthwise(c.attrs<WindowAttrs>(), c.x[0], v); })),
};

constexpr Op kDilation2d = {
    .name = "dilation2d",
    .doc =
        "Morphological dilation: y[i, j, k] = max over r and c of x[i·s + r·d - p, j·s + c·d - p, k] + "
        "filters[r, c, k]; the gradient goes to the first maximum.",
    .tensorflow = "Dilation2D",
    .args = {"x", "filters"},
    .infer = [](const Call& c) { return infer_depthwise(c, inputs_of(c), outputs_of(c)); },
    .forward = [](const Call& c,
                  std::span<Tensor> y) { kernels::dilation(depthwise_of(c, c.x[0]), c.x[0], c.x[1], y[0]); },
    .rule = Rule::custom(
        {.x = 0b11},
        [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
          const Tensor dy = std::move(dys[0]).dense();
          const DepthwisePositions at = dilation_positions(c);
          const Shape all{at.of_x.size()};
          const auto put = [&](const Tensor& positions, const Shape& shape) {   // adds dy at these positions
            return reshape(add_along_axis(reshape(dy, behind_extra(dy, c.y[0].ndim(), all)),
                                          reshape(positions, all), {shape.size()}, -1),
                           behind_extra(dy, c.y[0].ndim(), shape));
          };
          if (c.needs_gradient(0)) dx[0] = put(at.of_x, c.x[0].shape());
          if (c.needs_gradient(1)) dx[1] = put(at.of_filters, c.x[1].shape());
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          const DepthwisePositions at = dilation_positions(c);
          if (dx[0].defined()) dy[0] = gather(reshape(dx[0], {-1}), at.of_x);
          if (!dx[1].defined()) return;
          const Tensor of_filters = gather(reshape(dx[1], {-1}), at.of_filters);
          dy[0] = dy[0].defined() ? dy[0] + of_filters : of_filters;
        }),
};

constexpr Op kDilation2dPositions = {
    .name = "dilation2d_positions",
    .doc =
        "The flat indices of the elements of x and of filters whose sum is the first maximum in each "
        "window.",
    .args = {"x", "filters"},
    .infer =
        [](const Call& c) {
          const Shape y = infer_depthwise(c, inputs_of(c), outputs_of(c)).shape;
          return std::vector<Spec>{{DType::i64, y}, {DType::i64, y}};
        },
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::dilation_positions(depthwise_of(c, c.x[0]), c.x[0], c.x[1], y[0], y[1]);
        },
    .rule = Rule::none(),
};

constexpr const Op* depthwise_table[] = {&kDepthwiseConv2d, &kDepthwiseConv2dInputGradient,
                                         &kDepthwiseConv2dFilterGradient, &kDilation2d,
                                         &kDilation2dPositions};

Tensor depthwise(const WindowAttrs& a, const Tensor& x, const Tensor& filters) {
  return kDepthwiseConv2d(x, filters, a);
}
Tensor depthwise_input_gradient(const WindowAttrs& a, const Tensor& dy, const Tensor& filters) {
  return kDepthwiseConv2dInputGradient(dy, filters, a);
}
Tensor depthwise_filter_gradient(const WindowAttrs& a, const Tensor& x, const Tensor& dy) {
  return kDepthwiseConv2dFilterGradient(x, dy, a);
}
DepthwisePositions dilation_positions(const Call& c) {
  const Tensor inputs[] = {c.x[0], c.x[1]};
  std::vector<Tensor> y = kDilation2dPositions.run(inputs, c.raw_attrs);
  return {y[0], y[1]};
}

// Runs the checks shared by depthwise_conv2d and dilation2d; returns the window.
WindowAttrs checked(const Op& op, const Tensor& x, const Tensor& filters, const Conv2dOptions& o,
                    int filter_rank) {
  const Tensor* inputs[] = {&x, &filters};
  const Call c{.op = op, .x = {inputs, 2}};
  const DepthHeightWidth strides = in_volume(o.strides), dilation = in_volume(o.dilation);
  const Padding3d padding = in_volume(o.padding);
  check_numbers(op, "strides are", strides, 2);
  check_numbers(op, "dilation is", dilation, 2);
  check_padding(op, padding, kMostCells);
  require_floats(c);
  require_rank(c, 0);
  const Shape& f = filters.shape();
  if (f.ndim() != filter_rank || f[2] != channels_of(x) || std::min(f[0], f[1]) < 1)
    c.throw_shape_error(fmt::format("filters are not [rows, columns, {}{}]", channels_of(x),
                                    filter_rank == 4 ? ", multiplier" : ""));
  if (std::max(f[0], f[1]) > kMostCells || static_cast<double>(f[0]) * static_cast<double>(f[1]) > kMostCells)
    c.throw_shape_error("filters of 2^31 and more are too large");
  return checked_window(c, "the filters are", 2, {1, f[0], f[1]}, strides, dilation, padding);
}

// Applies f, which requires channels last, to images with channels first.
Tensor channels_last(const Op& op, Tensor (*f)(const Tensor&, const Tensor&, const Conv2dOptions&),
                     const Tensor& x, const Tensor& filters, Conv2dOptions o) {
  const Tensor* inputs[] = {&x, &filters};
  require_rank({.op = op, .x = {inputs, 2}}, 0);
  o.layout = Layout::nhwc;
  return with_channels(f(with_channels(x, 2, true), filters, o), 2, false);
}

}   // namespace

// If there are several filters per channel, repeats each channel once per filter.
Tensor depthwise_conv2d(const Tensor& images, const Tensor& all, const Conv2dOptions& o) {
  if (o.layout == Layout::nchw) return channels_last(kDepthwiseConv2d, depthwise_conv2d, images, all, o);
  const auto [x, filters] = promoted(images, all);
  const WindowAttrs a = checked(kDepthwiseConv2d, x, filters, o, 4);
  const std::int64_t multiplier = filters.shape()[3], channels = channels_of(x);
  const Tensor each = reshape(filters, behind({}, a.sizes(), channels * multiplier));
  if (multiplier == 1) return kDepthwiseConv2d(x, each, a);
  Shape copies = x.shape(), flat = x.shape();
  copies.push_back(multiplier);
  flat.set(flat.ndim() - 1, channels * multiplier);
  return kDepthwiseConv2d(reshape(broadcast_to(expand_dims(x, -1), copies), flat), each, a);
}

Tensor dilation2d(const Tensor& images, const Tensor& all, const Conv2dOptions& o) {
  if (o.layout == Layout::nchw) return channels_last(kDilation2d, dilation2d, images, all, o);
  const auto [x, filters] = promoted(images, all);
  const WindowAttrs a = checked(kDilation2d, x, filters, o, 3);
  const auto reads = [](const kernels::WindowAxis& axis) {
    for (std::int64_t i = 0; i < axis.outputs; ++i)
      if (axis.cell_at(i, 0) >= axis.cell_at(i, axis.extent)) return false;
    return true;
  };
  if (!reads(a.window.plane.rows) || !reads(a.window.plane.columns))
    throw_error<ShapeError>("dilation2d: a window contains no element of the image: x is {}, filters is {}",
                            x.spec(), filters.spec());
  return kDilation2d(x, filters, a);
}

std::span<const Op* const> depthwise_ops() { return depthwise_table; }

}   // namespace tapedeck
