// Pooling. In: rows, images or volumes [..., extents, channels]. Out: rows, images or volumes of other
// extents. The ops compute the maximum or the mean of each window, and differ in their windows.
#include "ops/nn/pool.h"

#include <cmath>
#include <memory>

#include "core/format.h"
#include "kernels/nn/pool.h"
#include "op/piecewise_constant.h"
#include "ops/nn/window.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Shape front_of_pool(const Call& c, int i) { return front_of(c.x[i], c.attrs<PoolAttrs>().axes + 1); }

// Throws unless input i is [..., from, channels].
void require_extents(const Call& c, int i, const Shape& from) {
  require_rank(c, i, from.ndim());
  require_images(c, i, from, channels_of(c.x[i]));
}
Spec with_extents(const Call& c, const Shape& to) {
  return {c.x[0].dtype(), behind(front_of_pool(c, 0), to, channels_of(c.x[0]))};
}

Spec infer_pool(const Call& c) {
  const auto& a = c.attrs<PoolAttrs>();
  require_floating(c, 0);
  require_extents(c, 0, a.inputs());
  return with_extents(c, a.outputs());
}
Spec infer_avg_gradient(const Call& c) {
  const auto& a = c.attrs<PoolAttrs>();
  require_floating(c, 0);
  require_extents(c, 0, a.outputs());
  return with_extents(c, a.inputs());
}

// Checks c.x[0], which has these extents, and c.x[1], the images that are searched for maxima. c.x[0] may
// have additional leading axes.
void require_beside_x(const Call& c, const Shape& extents) {
  require_floats(c);
  require_extents(c, 0, extents);
  require_extents(c, 1, c.attrs<PoolAttrs>().inputs());
  const Shape many = front_of_pool(c, 0), few = front_of_pool(c, 1);
  if (channels_of(c.x[0]) != channels_of(c.x[1])) c.throw_shape_error("channels differ");
  if (many.ndim() < few.ndim() || Shape(many.dims().last(static_cast<std::size_t>(few.ndim()))) != few)
    c.throw_shape_error("numbers of images differ");
}
Spec infer_scatter(const Call& c) {
  const auto& a = c.attrs<PoolAttrs>();
  require_beside_x(c, a.outputs());
  return with_extents(c, a.inputs());
}
Spec infer_pool_gather(const Call& c) {
  const auto& a = c.attrs<PoolAttrs>();
  require_beside_x(c, a.inputs());
  return with_extents(c, a.outputs());
}

kernels::Pooling pooling_of(const Call& c) {
  return {*c.attrs<PoolAttrs>().pool, front_of_pool(c, 0).size(), channels_of(c.x[0])};
}

Tensor max_scatter(const PoolAttrs& a, const Tensor& dy, const Tensor& x);
Tensor max_gather(const PoolAttrs& a, const Tensor& v, const Tensor& x);
Tensor avg_gradient(const PoolAttrs& a, const Tensor& dy);
Tensor avg(const PoolAttrs& a, const Tensor& x);

void run_max(const Call& c, std::span<Tensor> y) { kernels::max_pool(pooling_of(c), c.x[0], y[0]); }
void run_avg(const Call& c, std::span<Tensor> y) { kernels::avg_pool(pooling_of(c), c.x[0], y[0]); }
// The rule of max pooling, with or without positions as a second output.
constexpr Rule max_rule() {
  return Rule::custom(
      {.x = 1},
      [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
        dx[0] = max_scatter(c.attrs<PoolAttrs>(), std::move(dy[0]).dense(), c.x[0]);
      },
      [](const Call& c, Refs dx, std::span<Tensor> dy) {
        dy[0] = max_gather(c.attrs<PoolAttrs>(), dx[0], c.x[0]);
      });
}
constexpr Rule avg_rule() {
  return Rule::linear([](const Call& c, const Tensor& dy) { return avg_gradient(c.attrs<PoolAttrs>(), dy); });
}

Tensor max_of(const PoolAttrs& a, const Tensor& x);
Spec infer_volumes(const Call& c) {
  const auto& a = c.attrs<VolumeAttrs>();
  require_floating(c, 0);
  require_extents(c, 0, a.inputs());
  return {c.x[0].dtype(), behind(front_of(c.x[0], 4), a.outputs(), channels_of(c.x[0]))};
}
// Recomputes the maxima of the planes instead of saving them.
void max_volumes_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  const auto& a = c.attrs<VolumeAttrs>();
  const Tensor of_planes =
      max_scatter(a.across, a.folded(std::move(dy[0]).dense()), a.folded(max_of(a.plane, c.x[0])));
  dx[0] = max_scatter(a.plane, a.unfolded(of_planes), c.x[0]);
}
void max_volumes_jvp(const Call& c, Refs dx, std::span<Tensor> dy) {
  const auto& a = c.attrs<VolumeAttrs>();
  dy[0] = a.unfolded(
      max_gather(a.across, a.folded(max_gather(a.plane, dx[0], c.x[0])), a.folded(max_of(a.plane, c.x[0]))));
}

constexpr Op kMaxPool2d = {
    .name = "max_pool2d",
    .doc =
        "2-D max pooling: the largest element of each channel in each window; the gradient goes to the "
        "first maximum.",
    .tensorflow = "MaxPool MaxPoolV2",
    .args = {"x"},
    .infer = infer_pool,
    .forward = run_max,
    .rule = max_rule(),
};

constexpr Op kMaxPool1d = {
    .name = "max_pool1d",
    .doc =
        "1-D max pooling: the largest element of each channel in each window; the gradient goes to the "
        "first maximum.",
    .args = {"x"},
    .infer = infer_pool,
    .forward = run_max,
    .rule = max_rule(),
};

constexpr Op kMaxPool3d = {
    .name = "max_pool3d",
    .doc =
        "3-D max pooling: the largest element of each channel in each window; the gradient goes to the "
        "first maximum.",
    .tensorflow = "MaxPool3D",
    .args = {"x"},
    .infer = infer_volumes,
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  const auto& a = c.attrs<VolumeAttrs>();
                  y[0] = a.unfolded(max_of(a.across, a.folded(max_of(a.plane, c.x[0]))));
                },
                Outputs::by_kernel},
    .rule = Rule::custom({.x = 1}, max_volumes_vjp, max_volumes_jvp),
};

constexpr Op kMaxPoolWithArgmax = {
    .name = "max_pool_with_argmax",
    .doc =
        "2-D max pooling, and the position of the first maximum of each window as (row · width + column) "
        "· channels + channel; for a window with NaN, the position of the first NaN.",
    .tensorflow = "MaxPoolWithArgmax",
    .args = {"x"},
    .infer =
        [](const Call& c) {
          const Spec y = infer_pool(c);
          return std::vector<Spec>{y, {DType::i64, y.shape}};
        },
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::max_pool_with_positions(pooling_of(c), c.x[0], c.attrs<PoolAttrs>().through, y[0], y[1]);
        },
    .rule = max_rule(),
};

constexpr Op kFractionalMaxPool = {
    .name = "fractional_max_pool",
    .doc =
        "Fractional max pooling (Graham 2014): the largest element of each channel in each window, where "
        "windows are delimited by given bounds of rows and columns.",
    .tensorflow = "FractionalMaxPool",
    .args = {"x"},
    .infer = infer_pool,
    .forward = run_max,
    .rule = max_rule(),
};

constexpr Op kMaxPoolScatter = {
    .name = "max_pool_scatter",
    .doc =
        "The vjp of max pooling: zeros of x's shape, to which dy is added where x has the first maximum "
        "of each window.",
    .args = {"dy", "x"},
    .infer = infer_scatter,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::max_pool_scatter(pooling_of(c), c.x[0], c.x[1], front_of_pool(c, 1).size(), y[0]);
        },
    .rule = Rule::linear(
        [](const Call& c, const Tensor& v) { return max_gather(c.attrs<PoolAttrs>(), v, c.x[1]); },
        {.x = 0b10}),
};

constexpr Op kMaxPoolGather = {
    .name = "max_pool_gather",
    .doc = "The jvp of max pooling: the elements of v where x has the first maximum of each window.",
    .args = {"v", "x"},
    .infer = infer_pool_gather,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::max_pool_gather(pooling_of(c), c.x[0], c.x[1], front_of_pool(c, 1).size(), y[0]);
        },
    .rule = Rule::linear(
        [](const Call& c, const Tensor& dy) { return max_scatter(c.attrs<PoolAttrs>(), dy, c.x[1]); },
        {.x = 0b10}),
};

constexpr Op kAvgPool2d = {
    .name = "avg_pool2d",
    .doc = "2-D average pooling: the mean of each channel in each window, excluding padding.",
    .tensorflow = "AvgPool",
    .args = {"x"},
    .infer = infer_pool,
    .forward = run_avg,
    .rule = avg_rule(),
};

constexpr Op kAvgPool1d = {
    .name = "avg_pool1d",
    .doc = "1-D average pooling: the mean of each channel in each window, excluding padding.",
    .args = {"x"},
    .infer = infer_pool,
    .forward = run_avg,
    .rule = avg_rule(),
};

constexpr Op kAvgPool3d = {
    .name = "avg_pool3d",
    .doc = "3-D average pooling: the mean of each channel in each window, excluding padding.",
    .tensorflow = "AvgPool3D",
    .args = {"x"},
    .infer = infer_volumes,
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  const auto& a = c.attrs<VolumeAttrs>();
                  y[0] = a.unfolded(avg(a.across, a.folded(avg(a.plane, c.x[0]))));
                },
                Outputs::by_kernel},
    .rule = Rule::linear([](const Call& c, const Tensor& dy) {
      const auto& a = c.attrs<VolumeAttrs>();
      return avg_gradient(a.plane, a.unfolded(avg_gradient(a.across, a.folded(dy))));
    }),
};

constexpr Op kFractionalAvgPool = {
    .name = "fractional_avg_pool",
    .doc =
        "Fractional average pooling (Graham 2014): the mean of each channel in each window, where "
        "windows are delimited by given bounds of rows and columns.",
    .tensorflow = "FractionalAvgPool",
    .args = {"x"},
    .infer = infer_pool,
    .forward = run_avg,
    .rule = avg_rule(),
};

constexpr Op kAvgPoolGradient = {
    .name = "avg_pool_gradient",
    .doc = "The adjoint of average pooling.",
    .tensorflow = "AvgPoolGrad",
    .args = {"dy"},
    .infer = infer_avg_gradient,
    .forward = [](const Call& c,
                  std::span<Tensor> y) { kernels::avg_pool_gradient(pooling_of(c), c.x[0], y[0]); },
    .rule = Rule::linear([](const Call& c, const Tensor& v) { return avg(c.attrs<PoolAttrs>(), v); }),
};

constexpr const Op* pool_table[] = {
    &kMaxPool2d,     &kMaxPool1d, &kMaxPool3d, &kMaxPoolWithArgmax, &kFractionalMaxPool, &kMaxPoolScatter,
    &kMaxPoolGather, &kAvgPool2d, &kAvgPool1d, &kAvgPool3d,         &kFractionalAvgPool, &kAvgPoolGradient};

Tensor max_scatter(const PoolAttrs& a, const Tensor& dy, const Tensor& x) {
  return piecewise(kMaxPoolScatter(dy, x, a), x);
}
Tensor max_gather(const PoolAttrs& a, const Tensor& v, const Tensor& x) {
  return piecewise(kMaxPoolGather(v, x, a), x);
}
Tensor avg_gradient(const PoolAttrs& a, const Tensor& dy) { return kAvgPoolGradient(dy, a); }
Tensor max_of(const PoolAttrs& a, const Tensor& x) { return kMaxPool2d(x, a); }
Tensor avg(const PoolAttrs& a, const Tensor& x) { return kAvgPool2d(x, a); }

template <int N> Pool3dOptions options_in_volume(const Op& op, const PoolOptions<N>& o) {
  if constexpr (N == 1) check_row_padding(op.name, o.padding);
  constexpr std::int64_t as_window = PoolOptions<N>::kAsWindow;
  const bool side_by_side = o.strides == ExtentsOf<N>(as_window);
  return {.window = numbers_in_volume<N>(o.window),
          .strides = side_by_side ? DepthHeightWidth(as_window) : numbers_in_volume<N>(o.strides),
          .padding = padding_in_volume<N>(o.padding)};
}

// The max pooling kernels store cell indices in the dtype of x.
void check_cells(const Op& op, DepthHeightWidth window, int axes) {
  constexpr double most = 1 << 24;
  if (static_cast<double>(window.depth) * static_cast<double>(window.height) *
          static_cast<double>(window.width) >
      most)
    throw_error<ShapeError>("{}: window is {}; more than 2^24 cells are too many", op.name,
                            text_of(window, axes));
}

// Runs all checks; returns the window of the op over x.
WindowAttrs window_over(const Op& op, int axes, const Tensor& x, const Pool3dOptions& o) {
  const Tensor* inputs[] = {&x};
  const Call c{.op = op, .x = {inputs, 1}};
  const bool side_by_side = o.strides == DepthHeightWidth(Pool2dOptions::kAsWindow);
  require_rank(c, 0, axes);
  check_numbers(op, "window is", o.window, axes);
  if (!side_by_side) check_numbers(op, "strides are", o.strides, axes);
  check_padding(op, o.padding, o.window);
  return checked_window(c, "the window is", axes, o.window, side_by_side ? o.window : o.strides, 1,
                        o.padding);
}
// Returns the result of pooling x if both have no elements, else undefined. This avoids listing the windows.
Tensor empty_pool(const Op& op, const Tensor& x, const WindowAttrs& a) {
  if (x.size()) return {};
  const Shape shape = behind(front_of(x, a.axes + 1), a.outputs(), channels_of(x));
  return shape.size() ? Tensor() : without_elements(op, x, shape);
}
Tensor pool(const Op& op, int axes, const Tensor& x, const Pool3dOptions& o) {
  const WindowAttrs a = window_over(op, axes, x, o);
  if (Tensor y = empty_pool(op, x, a); y.defined()) return y;
  return axes == 3 ? op(x, volume_pool_of(a)) : op(x, pool_of(a));
}
template <int N> Tensor max_pool(const Op& op, const Tensor& x, const PoolOptions<N>& options) {
  const Pool3dOptions o = options_in_volume(op, options);
  check_cells(op, o.window, N);
  return pool(op, N, x, o);
}
template <int N> Tensor avg_pool(const Op& op, const Tensor& x, const PoolOptions<N>& options) {
  return pool(op, N, x, options_in_volume(op, options));
}

// Returns where the regions begin, followed by the extent. Graham 2014, section 3: random regions have
// two sizes in random order; pseudo-random ones begin at ceil(a (i + u)) - 1 with one random u.
std::vector<std::int64_t> bounds_of(std::string_view name, std::int64_t extent, double ratio,
                                    bool pseudo_random, random::Key key) {
  if (!(ratio >= 1 && ratio <= static_cast<double>(extent)))
    throw_error<ArgumentError>("{}: a ratio is {}; use 1..{}", name, ratio, extent);
  const double regions = std::floor(static_cast<double>(extent) / ratio);
  if (regions > 0x1p31)   // all are listed, even for images without channels
    throw_error<ShapeError>("{}: more than 2^31 regions are too many: an axis has extent {}, its ratio is {}",
                            name, extent, ratio);
  const auto outputs = static_cast<std::int64_t>(regions);
  std::vector<std::int64_t> bounds{0};
  if (pseudo_random) {
    const double a = static_cast<double>(extent) / static_cast<double>(outputs), k = std::floor(a),
                 n = static_cast<double>(outputs);
    const double most = std::min((k + 2) / a - 1, (static_cast<double>(extent) + 1 - k) / a - (n - 1));
    const double u = random::uniform({}, key, 0, 1, DType::f64).item() * most;
    for (std::int64_t i = 1; i < outputs; ++i)
      bounds.push_back(static_cast<std::int64_t>(std::ceil(a * (static_cast<double>(i) + u))) - 1);
    bounds.push_back(extent);
    return bounds;
  }
  const std::vector<std::int64_t> order = random::permutation(outputs, key).to_vector<std::int64_t>();
  for (const std::int64_t i : order)
    bounds.push_back(bounds.back() + extent / outputs + (i < extent % outputs ? 1 : 0));
  return bounds;
}

Fractional fractional(const Op& op, const Tensor& x, const FractionalPoolOptions& o, random::Key key) {
  if (!is_floating(x.dtype()))
    throw_error<DTypeError>("{}: takes f32, f64, f16 or bf16, use astype: x is {}", op.name, x.spec());
  if (x.ndim() < 3)
    throw_error<ShapeError>("{}: x needs the axes height, width and channels: x is {}", op.name, x.spec());
  const std::vector<std::int64_t> rows =
      bounds_of(op.name, x.shape()[x.ndim() - 3], o.height_ratio, o.pseudo_random, key.split(0));
  const std::vector<std::int64_t> columns =
      bounds_of(op.name, x.shape()[x.ndim() - 2], o.width_ratio, o.pseudo_random, key.split(1));
  const PoolAttrs a = pool_of(rows, columns, o.overlapping);
  check_cells(op, {1, a.pool->rows.widest(), a.pool->columns.widest()}, 2);
  return {op(x, a), tensor(rows), tensor(columns)};
}

}   // namespace

Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options) { return max_pool(kMaxPool1d, x, options); }
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) { return max_pool(kMaxPool2d, x, options); }
Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options) { return max_pool(kMaxPool3d, x, options); }
MaxAndPosition max_pool_with_argmax(const Tensor& x, const Pool2dOptions& options,
                                    MaxPoolWithArgmaxOptions positions) {
  const Op& op = kMaxPoolWithArgmax;
  check_cells(op, in_volume(options.window), 2);
  const WindowAttrs window = window_over(op, 2, x, options_in_volume(op, options));
  if (const Tensor y = empty_pool(op, x, window); y.defined()) return {y, zeros(y.shape(), DType::i64)};
  PoolAttrs a = pool_of(window);
  a.through = positions.through_all_images;
  const std::vector<Tensor> y = kMaxPoolWithArgmax.run(std::span(&x, 1), Attrs(a));
  return {y[0], y[1]};
}

Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options) { return avg_pool(kAvgPool1d, x, options); }
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) { return avg_pool(kAvgPool2d, x, options); }
Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options) { return avg_pool(kAvgPool3d, x, options); }

Fractional fractional_max_pool(const Tensor& x, const FractionalPoolOptions& options, random::Key key) {
  return fractional(kFractionalMaxPool, x, options, key);
}
Fractional fractional_avg_pool(const Tensor& x, const FractionalPoolOptions& options, random::Key key) {
  return fractional(kFractionalAvgPool, x, options, key);
}

std::span<const Op* const> pool_ops() { return pool_table; }

}   // namespace tapedeck
