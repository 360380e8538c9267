// Pooling. In: rows, images or volumes [..., axes, channels]. Out: the same with other extents.
// What a window takes is one of three pairs of functions, the largest cell and the mean with their adjoints;
// the ops differ in their windows.
#include "kernels/nn/pool.h"

#include <cmath>
#include <memory>

#include "core/format.h"
#include "ops/nn/window.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

// Windows over rows (axes = 1) or images (2). through: positions count through all images.
struct PoolAttrs {
  std::shared_ptr<const kernels::Pool> pool;
  int axes;
  bool through = false;

  Shape inputs() const {
    return axes == 1 ? Shape{pool->columns.extent} : Shape{pool->rows.extent, pool->columns.extent};
  }
  Shape outputs() const {
    return axes == 1 ? Shape{pool->columns.outputs()} : Shape{pool->rows.outputs(), pool->columns.outputs()};
  }
};
// Maxima and means are separable: a volume's windows are those of its planes, and then those across the
// planes, whose pixels are seen as channels.
struct VolumeAttrs {
  PoolAttrs plane, across;

  Shape inputs() const {
    return {across.pool->rows.extent, plane.pool->rows.extent, plane.pool->columns.extent};
  }
  Shape outputs() const {
    return {across.pool->rows.outputs(), plane.pool->rows.outputs(), plane.pool->columns.outputs()};
  }
  /// Planes [..., planes, rows, columns, channels] as [..., planes, 1, rows · columns · channels], and back.
  Tensor folded(const Tensor& planes) const {
    const Shape& s = planes.shape();
    const int n = planes.ndim();
    return reshape(planes,
                   behind(tapedeck::front_of(planes, 4), {s[n - 4], 1}, s[n - 3] * s[n - 2] * s[n - 1]));
  }
  Tensor unfolded(const Tensor& y) const {
    const Shape out = outputs();
    return reshape(y, behind(tapedeck::front_of(y, 3), {y.shape()[y.ndim() - 3], out[1], out[2]},
                             channels_of(y) / (out[1] * out[2])));
  }
};

Shape front_of(const Call& c, int i) { return tapedeck::front_of(c.x[i], c.attrs<PoolAttrs>().axes + 1); }

// Input i as [..., from, channels].
void require_extents(const Call& c, int i, const Shape& from) {
  require_rank(c, i, from.ndim());
  require_images(c, i, from, channels_of(c.x[i]));
}
Spec with_extents(const Call& c, const Shape& to) {
  return {c.x[0].dtype(), behind(front_of(c, 0), to, channels_of(c.x[0]))};
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

// c.x[0] of these extents, with c.x[1], which says where the largest cells are; further axes stand in front.
void require_beside_x(const Call& c, const Shape& extents) {
  require_floats(c);
  require_extents(c, 0, extents);
  require_extents(c, 1, c.attrs<PoolAttrs>().inputs());
  const Shape many = front_of(c, 0), few = front_of(c, 1);
  if (channels_of(c.x[0]) != channels_of(c.x[1])) throw_shape_error(c, "channels differ");
  if (many.ndim() < few.ndim() || Shape(many.dims().last(static_cast<std::size_t>(few.ndim()))) != few)
    throw_shape_error(c, "numbers of images differ");
}
Spec infer_scatter(const Call& c) {
  const auto& a = c.attrs<PoolAttrs>();
  require_beside_x(c, a.outputs());
  return with_extents(c, a.inputs());
}
Spec infer_gather(const Call& c) {
  const auto& a = c.attrs<PoolAttrs>();
  require_beside_x(c, a.inputs());
  return with_extents(c, a.outputs());
}

kernels::Pooling pooling_of(const Call& c) {
  return {*c.attrs<PoolAttrs>().pool, front_of(c, 0).size(), channels_of(c.x[0])};
}

Tensor max_scatter(const PoolAttrs& a, const Tensor& dy, const Tensor& x);
Tensor max_gather(const PoolAttrs& a, const Tensor& v, const Tensor& x);
Tensor avg_gradient(const PoolAttrs& a, const Tensor& dy);
Tensor avg(const PoolAttrs& a, const Tensor& x);

void run_max(const Call& c, std::span<Tensor> y) { kernels::max_pool(pooling_of(c), c.x[0], y[0]); }
void run_avg(const Call& c, std::span<Tensor> y) { kernels::avg_pool(pooling_of(c), c.x[0], y[0]); }
// Of the largest cells, and of where they are besides.
constexpr Rule max_rule() {
  return custom(
      {.x = 1},
      [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
        dx[0] = max_scatter(c.attrs<PoolAttrs>(), std::move(dy[0]).dense(), c.x[0]);
      },
      [](const Call& c, Refs dx, std::span<Tensor> dy) {
        dy[0] = max_gather(c.attrs<PoolAttrs>(), dx[0], c.x[0]);
      });
}
constexpr Rule avg_rule() {
  return linear([](const Call& c, const Tensor& dy) { return avg_gradient(c.attrs<PoolAttrs>(), dy); });
}

Tensor max_of(const PoolAttrs& a, const Tensor& x);
Spec infer_volumes(const Call& c) {
  const auto& a = c.attrs<VolumeAttrs>();
  require_floating(c, 0);
  require_extents(c, 0, a.inputs());
  return {c.x[0].dtype(), behind(tapedeck::front_of(c.x[0], 4), a.outputs(), channels_of(c.x[0]))};
}
// The largest elements of planes are found again, so that they need not be kept.
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

kernels::PoolAxis axis_of(const kernels::WindowAxis& w) {
  kernels::PoolAxis axis{w.extent, {}};
  for (std::int64_t o = 0; o < w.outputs; ++o)
    axis.cells.push_back(
        {std::max<std::int64_t>(w.position(o, 0), 0), std::min(w.position(o, 0) + w.size, w.extent)});
  return axis;
}
PoolAttrs pool_of(kernels::PoolAxis rows, kernels::PoolAxis columns) {
  return {std::make_shared<const kernels::Pool>(kernels::Pool{std::move(rows), std::move(columns)}), 2};
}
PoolAttrs pool_of(const WindowAttrs& a) {
  const Window2d& w = a.window.plane;
  if (a.axes == 1) return {std::make_shared<const kernels::Pool>(kernels::Pool{{}, axis_of(w.columns)}), 1};
  return pool_of(axis_of(w.rows), axis_of(w.columns));
}
VolumeAttrs volume_pool_of(const WindowAttrs& a) {
  return {pool_of(WindowAttrs{a.window, 2}), pool_of(axis_of(a.window.planes), {})};
}

// Windows between bounds, which share their last cell with the next one if they overlap.
kernels::PoolAxis axis_of(const std::vector<std::int64_t>& bounds, bool overlapping) {
  kernels::PoolAxis axis{bounds.back(), {}};
  for (std::size_t o = 0; o + 1 < bounds.size(); ++o)
    axis.cells.push_back({bounds[o], std::min(bounds[o + 1] + (overlapping ? 1 : 0), bounds.back())});
  return axis;
}
PoolAttrs pool_of(const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& columns,
                  bool overlapping) {
  return pool_of(axis_of(rows, overlapping), axis_of(columns, overlapping));
}

OwnedAttrs row_window(std::int64_t input, std::int64_t size, std::int64_t stride,
                      const Padding& padding = Padding::valid) {
  return Attrs(pool_of({window_of(in_row(input), in_row(size), in_row(stride), 1, in_row(padding)), 1}));
}
PoolAttrs pool_window(HeightWidth input, HeightWidth size, HeightWidth strides, const Padding& padding) {
  return pool_of(
      {window_of(in_volume(input), in_volume(size), in_volume(strides), 1, in_volume(padding)), 2});
}
OwnedAttrs window(HeightWidth input, HeightWidth size, HeightWidth strides = 1,
                  const Padding& padding = Padding::valid) {
  return Attrs(pool_window(input, size, strides, padding));
}
OwnedAttrs volume_window(DepthHeightWidth input, DepthHeightWidth size, DepthHeightWidth strides,
                         const Padding3d& padding = Padding::valid) {
  return Attrs(volume_pool_of({window_of(input, size, strides, 1, padding), 3}));
}
OwnedAttrs bounds(const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& columns,
                  bool overlapping = false) {
  return Attrs(pool_of(rows, columns, overlapping));
}
OwnedAttrs through_all(HeightWidth input, HeightWidth size) {
  PoolAttrs a = pool_window(input, size, size, Padding::valid);
  a.through = true;
  return Attrs(a);
}

Tensor f64(const Shape& shape, const std::vector<double>& v) { return tensor(v, shape); }

constexpr Op table[] = {
    {.name = "max_pool2d",
     .doc = "The largest element of each channel in each window; the gradient goes to the first of them.",
     .tensorflow = "MaxPool MaxPoolV2",
     .args = {"x"},
     .infer = infer_pool,
     .forward = run_max,
     .rule = max_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({2, 5, 4, 3})}, .attrs = window({5, 4}, {3, 2}, {1, 2})},
               {.inputs = {distinct({4, 5, 37})}, .attrs = window({4, 5}, 3, 2, Padding::same)},
               {.inputs = {distinct({2, 2, 3, 3, 1})}, .attrs = window(3, 2, 3, {1, 0, 1, 1})},
               {.inputs = {uniform({0, 4, 4, 2}, -1, 1)}, .attrs = window(4, 2, 2)},
               {.inputs = {distinct({1, 5, 4, 2})},
                .attrs = window({5, 4}, {3, 2}, {1, 2}),
                .expected = {f64({1, 3, 2, 2}, {-0.5699999999999998, 1.8300000000000003, 1.3300000000000003,
                                                -0.16999999999999996, 1.7300000000000002, 1.6300000000000001,
                                                1.1300000000000001, -0.3699999999999999, 1.7300000000000002,
                                                1.4300000000000004, 0.8300000000000003, 1.9300000000000004})},
                .oracle = "torch.nn.functional.max_pool2d(torch.tensor(x).permute(0, 3, 1, 2), (3, 2), "
                          "stride=(1, 2)).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {distinct({1, 5, 4, 1})},
                .attrs = window({5, 4}, 3, 2, 1),
                .expected = {f64({1, 3, 2, 1},
                                 {0.43000000000000016, 0.9300000000000002, 0.33000000000000007,
                                  0.8300000000000001, 0.23000000000000018, 0.7300000000000002})},
                .oracle = "torch.nn.functional.max_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 3, stride=2, "
                          "padding=1).permute(0, 2, 3, 1).numpy()"}};
         }},

    {.name = "max_pool1d",
     .doc = "The same of rows.",
     .args = {"x"},
     .infer = infer_pool,
     .forward = run_max,
     .rule = max_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({2, 9, 37})}, .attrs = row_window(9, 3, 2, Padding::same)},
               {.inputs = {distinct({4, 1})}, .attrs = row_window(4, 4, 1)},
               {.inputs = {distinct({2, 3, 5, 2})}, .attrs = row_window(5, 3, 1, {0, 0, 2, 1})},
               {.inputs = {uniform({0, 4, 2}, -1, 1)}, .attrs = row_window(4, 2, 2)},
               {.inputs = {distinct({2, 7, 2})},
                .attrs = row_window(7, 3, 2),
                .expected = {tensor(std::vector<double>{0.22999999999999995, 1.33, 0.93, 0.42999999999999994,
                                                        0.029999999999999943, 1.1300000000000001, 0.73, 1.03,
                                                        0.53, 1.03, 1.23, 0.8300000000000001},
                                    {2, 3, 2})},
                .oracle = "torch.nn.functional.max_pool1d(torch.tensor(x).permute(0, 2, 1), 3, "
                          "stride=2).permute(0, 2, 1).numpy()"}};
         }},

    {.name = "max_pool3d",
     .doc = "The same of volumes.",
     .tensorflow = "MaxPool3D",
     .args = {"x"},
     .infer = infer_volumes,
     .forward = {[](const Call& c, std::span<Tensor> y) {
                   const auto& a = c.attrs<VolumeAttrs>();
                   y[0] = a.unfolded(max_of(a.across, a.folded(max_of(a.plane, c.x[0]))));
                 },
                 Outputs::own},
     .rule = custom({.x = 1}, max_volumes_vjp, max_volumes_jvp),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({2, 5, 4, 3, 3})},
                .attrs = volume_window({5, 4, 3}, {3, 2, 2}, {2, 1, 2}, Padding::same)},
               {.inputs = {distinct({3, 2, 4, 37})}, .attrs = volume_window({3, 2, 4}, 2, 1)},
               {.inputs = {distinct({1, 2, 3, 3, 2, 1})},
                .attrs = volume_window({3, 3, 2}, 2, 2, {1, 0, {0, 1, 1, 0}})},
               {.inputs = {uniform({0, 2, 2, 2, 2}, -1, 1)}, .attrs = volume_window(2, 2, 2)},
               {.inputs = {distinct({1, 3, 5, 4, 2})},
                .attrs = volume_window({3, 5, 4}, {2, 3, 2}, {1, 2, 2}),
                .expected = {tensor(
                    std::vector<double>{5.530000000000001, 5.630000000000001, 3.93, 5.130000000000001,
                                        5.530000000000001, 4.330000000000001, 2.5300000000000002,
                                        5.930000000000001, 5.530000000000001, 2.33, 5.730000000000001,
                                        5.130000000000001, 5.530000000000001, 5.430000000000001,
                                        5.030000000000001, 5.930000000000001},
                    {1, 2, 2, 2, 2})},
                .oracle = "torch.nn.functional.max_pool3d(torch.tensor(x).permute(0, 4, 1, 2, 3), (2, 3, 2), "
                          "stride=(1, 2, 2)).permute(0, 2, 3, 4, 1).numpy()"}};
         }},

    {.name = "max_pool_with_argmax",
     .doc = "The largest element of each channel in each window, and where the first of them is, as (row · "
            "width + column) · channels + channel; of a window with NaN, the first NaN.",
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
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({2, 5, 4, 3})}, .attrs = window({5, 4}, {3, 2}, {1, 2})},
               {.inputs = {distinct({4, 5, 37})}, .attrs = window({4, 5}, 3, 2, Padding::same)},
               {.inputs = {uniform({0, 4, 4, 2}, -1, 1)}, .attrs = window(4, 2, 2)},
               {.inputs = {distinct({2, 5, 4, 2})},
                .attrs = window({5, 4}, {3, 2}, {1, 2}),
                .expected = {tensor(std::vector<double>{-1.1699999999999997,  3.7300000000000004,
                                                        2.5300000000000002,   -0.46999999999999975,
                                                        3.5300000000000002,   3.23,
                                                        2.1300000000000003,   -0.8699999999999998,
                                                        3.5300000000000002,   2.83,
                                                        1.6300000000000003,   3.83,
                                                        3.6300000000000003,   1.4300000000000004,
                                                        0.3300000000000003,   3.33,
                                                        3.6300000000000003,   1.0300000000000002,
                                                        -0.06999999999999978, 3.93,
                                                        3.6300000000000003,   0.5300000000000002,
                                                        -0.5699999999999998,  3.93},
                                    {2, 3, 2, 2}),
                             tensor(std::vector<std::int64_t>{2,  3, 6, 7, 24, 11, 14, 15, 24, 19, 22, 37,
                                                              18, 3, 6, 5, 18, 11, 14, 31, 18, 19, 22, 31},
                                    {2, 3, 2, 2})},
                .oracle = "(lambda y, i: (y.permute(0, 2, 3, 1).numpy(), i.permute(0, 2, 3, 1).numpy() * 2 + "
                          "np.array([0, 1])))("
                          "*torch.nn.functional.max_pool2d(torch.tensor(x).permute(0, 3, 1, 2), (3, 2), "
                          "stride=(1, 2), return_indices=True))"},
               {.inputs = {f64({2, 2, 2, 1}, {1, 3, 2, 0, 5, 4, 6, 7})},
                .attrs = through_all(2, 2),
                .expected = {f64({2, 1, 1, 1}, {3, 7}),
                             tensor(std::vector<std::int64_t>{1, 7}, {2, 1, 1, 1})},
                .oracle = "by hand"}};
         }},

    {.name = "fractional_max_pool",
     .doc = "The largest element of each channel in each window, where windows lie between bounds of rows "
            "and of columns (Graham 2014).",
     .tensorflow = "FractionalMaxPool",
     .args = {"x"},
     .infer = infer_pool,
     .forward = run_max,
     .rule = max_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({2, 6, 5, 3})}, .attrs = bounds({0, 2, 3, 5, 6}, {0, 1, 3, 5}, true)},
               {.inputs = {distinct({3, 4, 37})}, .attrs = bounds({0, 1, 3}, {0, 2, 4})},
               {.inputs = {uniform({0, 2, 2, 2}, -1, 1)}, .attrs = bounds({0, 1, 2}, {0, 2})},
               {.inputs = {distinct({1, 5, 4, 2})},
                .attrs = bounds({0, 2, 3, 5}, {0, 1, 3, 4}),
                .expected = {tensor(
                    std::vector<double>{-1.57, 0.9300000000000002, 0.3300000000000002, 1.8300000000000003,
                                        1.3300000000000003, -0.1699999999999999, -1.97, 0.5300000000000001,
                                        -0.0699999999999999, 1.4300000000000002, 0.8300000000000002,
                                        -0.6699999999999999, 1.7300000000000002, 0.23000000000000012,
                                        -0.2699999999999999, 1.9300000000000002, 0.6300000000000001,
                                        -0.8699999999999999},
                    {1, 3, 3, 2})},
                .oracle = "np.maximum.reduceat(np.maximum.reduceat(x, [0, 2, 3], 1), [0, 1, 3], 2)"}};
         }},

    {.name = "max_pool_scatter",
     .doc = "The gradient of maxima over windows: zeros of x's shape, to which dy is added where x has the "
            "first largest element of each window.",
     .args = {"dy", "x"},
     .infer = infer_scatter,
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           kernels::max_pool_scatter(pooling_of(c), c.x[0], c.x[1], front_of(c, 1).size(), y[0]);
         },
     .rule =
         linear([](const Call& c, const Tensor& v) { return max_gather(c.attrs<PoolAttrs>(), v, c.x[1]); },
                {.x = 0b10}),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 2, 3}, -1, 1), distinct({2, 5, 4, 3})},
                .attrs = window({5, 4}, {3, 2}, {1, 2})},
               {.inputs = {uniform({3, 2, 3, 37}, -1, 1), distinct({4, 5, 37})},
                .attrs = window({4, 5}, 3, 2, Padding::same)},
               {.inputs = {uniform({1, 2, 2, 2}, -1, 1), distinct({1, 4, 4, 2})},
                .attrs = window(4, 2, 2),
                .expected = {f64({1, 4, 4, 2}, {0.0,
                                                0.0,
                                                -0.7639320225002102,
                                                0.4721359549995796,
                                                0.0,
                                                0.0,
                                                -0.2917960675006306,
                                                0.9442719099991592,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                -0.5835921350012612,
                                                0.0,
                                                0.0,
                                                0.6524758424985286,
                                                -0.11145618000168156,
                                                0.18033988749894903,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0,
                                                0.0})},
                .oracle = "torch.nn.functional.max_unpool2d(torch.tensor(dy).permute(0, 3, 1, 2), "
                          "torch.nn.functional.max_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 2, "
                          "return_indices=True)[1], 2).permute(0, 2, 3, 1).numpy()"}};
         }},

    {.name = "max_pool_gather",
     .doc = "The tangent of maxima over windows: the elements of v where x has the first largest element of "
            "each window.",
     .args = {"v", "x"},
     .infer = infer_gather,
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           kernels::max_pool_gather(pooling_of(c), c.x[0], c.x[1], front_of(c, 1).size(), y[0]);
         },
     .rule =
         linear([](const Call& c, const Tensor& dy) { return max_scatter(c.attrs<PoolAttrs>(), dy, c.x[1]); },
                {.x = 0b10}),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 5, 4, 3}, -1, 1), distinct({2, 5, 4, 3}, 1)},
                .attrs = window({5, 4}, {3, 2}, {1, 2})},
               {.inputs = {uniform({3, 4, 5, 37}, -1, 1), distinct({4, 5, 37}, 1)},
                .attrs = window({4, 5}, 3, 2, Padding::same)},
               {.inputs = {uniform({1, 4, 5, 2}, -1, 1), distinct({1, 4, 5, 2}, 1)},
                .attrs = window({4, 5}, 3),
                .expected = {f64({1, 2, 3, 2}, {0.18033988749894903, 0.13776741499453493, 0.18033988749894903,
                                                0.2492235949962165, 0.18033988749894903, 0.36067977499789805,
                                                0.31810730249348396, 0.13776741499453493, 0.06888370749726747,
                                                0.2492235949962165, 0.2066511224918024, 0.2492235949962165})},
                .oracle = "torch.gather(torch.tensor(v).permute(0, 3, 1, 2).reshape(1, 2, -1), 2, "
                          "torch.nn.functional.max_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 3, stride=1, "
                          "return_indices=True)[1].reshape(1, 2, -1)).reshape(1, 2, 2, 3).permute(0, 2, 3, "
                          "1).numpy()"}};
         }},

    {.name = "avg_pool2d",
     .doc = "The mean of each channel in each window, over the elements that belong to the image.",
     .tensorflow = "AvgPool",
     .args = {"x"},
     .infer = infer_pool,
     .forward = run_avg,
     .rule = avg_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 5, 4, 3}, -1, 1)}, .attrs = window({5, 4}, {3, 2}, {1, 2})},
               {.inputs = {uniform({2, 2, 3, 3, 1}, -1, 1)}, .attrs = window(3, 2, 3, {1, 0, 1, 1})},
               {.inputs = {uniform({0, 4, 4, 2}, -1, 1)}, .attrs = window(4, 2, 2)},
               {.inputs = {uniform({1, 5, 4, 2}, -1, 1)},
                .attrs = window({5, 4}, {3, 2}, {1, 2}),
                .expected = {f64(
                    {1, 3, 2, 2},
                    {-0.639320225002102, 0.5967477524976879, 0.30495168499705727, -0.4589803375031529,
                     -0.4174430716704502, 0.4852915724960063, 0.1934955049953757, -0.5704365175048345,
                     -0.1955659183387984, 0.37383539249432474, 0.08203932499369415, -0.34855936417318273})},
                .oracle = "torch.nn.functional.avg_pool2d(torch.tensor(x).permute(0, 3, 1, 2), (3, 2), "
                          "stride=(1, 2)).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {uniform({1, 5, 4, 1}, -1, 1)},
                .attrs = window({5, 4}, 3, 2, 1),
                .expected = {f64({1, 3, 2, 1},
                                 {-0.17376207875073568, 0.18033988749894903, -0.25735421375199685,
                                  0.0411921969421323, -0.340946348753258, 0.013155617496426686})},
                .oracle = "torch.nn.functional.avg_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 3, stride=2, "
                          "padding=1, count_include_pad=False).permute(0, 2, 3, 1).numpy()"},
               {.inputs = {uniform({1, 3, 3, 1}, -1, 1)},
                .attrs = window(3, 2, 2, Padding::same),
                .expected = {f64({1, 2, 2, 1}, {0.20820393249936942, -0.4376941012509459, 0.27050983124842354,
                                                -0.8753882025018918})},
                .oracle = "torch.nn.functional.avg_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 2, "
                          "ceil_mode=True, count_include_pad=False).permute(0, 2, 3, 1).numpy()"}};
         }},

    {.name = "avg_pool1d",
     .doc = "The same of rows.",
     .args = {"x"},
     .infer = infer_pool,
     .forward = run_avg,
     .rule = avg_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 9, 37}, -1, 1)}, .attrs = row_window(9, 3, 2, Padding::same)},
               {.inputs = {uniform({4, 1}, -1, 1)}, .attrs = row_window(4, 4, 1)},
               {.inputs = {uniform({0, 4, 2}, -1, 1)}, .attrs = row_window(4, 2, 2)},
               {.inputs = {uniform({2, 7, 2}, -1, 1)},
                .attrs = row_window(7, 3, 2, {0, 0, 1, 1}),
                .expected = {tensor(
                    std::vector<double>{
                        -0.5278640450004204, 0.7082039324993694, 0.18033988749894903, 0.0830745316654055,
                        -0.2087215358352251, 0.36067977499789805, -0.16718427000252234, 0.06888370749726747,
                        -0.22291236000336312, 0.013155617496426686, -0.5147084275039937, 0.05469288332912944,
                        0.4295634824951655, -0.3343685400050447, 0.13776741499453493, 0.37383539249432474},
                    {2, 4, 2})},
                .oracle = "torch.nn.functional.avg_pool1d(torch.tensor(x).permute(0, 2, 1), 3, stride=2, "
                          "padding=1, count_include_pad=False).permute(0, 2, 1).numpy()"}};
         }},

    {.name = "avg_pool3d",
     .doc = "The same of volumes.",
     .tensorflow = "AvgPool3D",
     .args = {"x"},
     .infer = infer_volumes,
     .forward = {[](const Call& c, std::span<Tensor> y) {
                   const auto& a = c.attrs<VolumeAttrs>();
                   y[0] = a.unfolded(avg(a.across, a.folded(avg(a.plane, c.x[0]))));
                 },
                 Outputs::own},
     .rule = linear([](const Call& c, const Tensor& dy) {
       const auto& a = c.attrs<VolumeAttrs>();
       return avg_gradient(a.plane, a.unfolded(avg_gradient(a.across, a.folded(dy))));
     }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 5, 4, 3, 3}, -1, 1)},
                .attrs = volume_window({5, 4, 3}, {3, 2, 2}, {2, 1, 2}, Padding::same)},
               {.inputs = {uniform({3, 2, 4, 37}, -1, 1)}, .attrs = volume_window({3, 2, 4}, 2, 1)},
               {.inputs = {uniform({0, 2, 2, 2, 2}, -1, 1)}, .attrs = volume_window(2, 2, 2)},
               {.inputs = {uniform({1, 3, 5, 4, 2}, -1, 1)},
                .attrs = volume_window({3, 5, 4}, {2, 3, 2}, {1, 2, 2}, {1, 1, {1, 1, 1, 1}}),
                .expected = {tensor(
                    std::vector<double>{-0.819660112501051,    0.41640786499873883,   -0.11145618000168156,
                                        0.12461179749810825,   0.5967477524976879,    -0.16718427000252234,
                                        -0.32017771583690663,  0.2492235949962165,    -0.2786404500042039,
                                        -0.042572472504414094, 0.4295634824951655,    -0.3343685400050447,
                                        0.8459713474939043,    0.08203932499369415,   -0.44582472000672624,
                                        0.29024325749306357,   0.2623792124926432,    -0.501552810007567,
                                        -0.09830056250525487,  0.13776741499453493,   -0.39009663000588546,
                                        0.34597134749390435,   0.31810730249348396,   -0.44582472000672624,
                                        0.06784850082555612,   -0.029416855007987408, -0.22394756667507446,
                                        0.178787077491382,     0.15092303249096162,   -0.27967565667591526,
                                        0.5673308974897004,    -0.19660112501050975,  -0.22446517001093014,
                                        0.26160280748885967,   -0.016261237511560722, 0.21980673998822908,
                                        0.34441853748633733,   -0.41951348501387287,  -0.19737753001429326,
                                        0.28869044748549655,   -0.23917359751492384,  -0.0031056200151340363,
                                        0.177234267483815,     -0.5866977550163952,   0.21877153331651775,
                                        0.12150617748297421,   -0.4063578675174462,   0.16304344331567697,
                                        0.01004999748129265,   -0.25388202501891755,  0.21825392998066206,
                                        -0.04567809251954813,  -0.5735421375199685,   0.6625258399798213,
                                        0.06577808748213343,   -0.6981539350180768,   0.27398201998150284,
                                        0.01004999748129265,   -0.5178140475191277,   0.7182539299806621,
                                        -0.10140618252038891,  -0.8653382050205991,   0.6067977499789805,
                                        -0.1571342725212297,   -0.6849983175216501,   0.5510696599781397,
                                        -0.26859045252291125,  -0.032522475023121444, 0.43961347997645817,
                                        -0.32431854252375203,  -0.8521825875241724,   0.3838853899756174},
                    {1, 4, 3, 3, 2})},
                .oracle =
                    "torch.nn.functional.avg_pool3d(torch.tensor(x).permute(0, 4, 1, 2, 3), (2, 3, 2), "
                    "stride=(1, 2, 2), padding=1, count_include_pad=False).permute(0, 2, 3, 4, 1).numpy()"}};
         }},

    {.name = "fractional_avg_pool",
     .doc = "The mean of each channel in each window, where windows lie between bounds of rows and of "
            "columns (Graham 2014).",
     .tensorflow = "FractionalAvgPool",
     .args = {"x"},
     .infer = infer_pool,
     .forward = run_avg,
     .rule = avg_rule(),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 6, 5, 3}, -1, 1)},
                .attrs = bounds({0, 2, 3, 5, 6}, {0, 1, 3, 5}, true)},
               {.inputs = {uniform({3, 4, 37}, -1, 1)}, .attrs = bounds({0, 1, 3}, {0, 2, 4})},
               {.inputs = {uniform({0, 2, 2, 2}, -1, 1)}, .attrs = bounds({0, 1, 2}, {0, 2})},
               {.inputs = {uniform({1, 5, 4, 2}, -1, 1)},
                .attrs = bounds({0, 2, 3, 5}, {0, 1, 3, 4}),
                .expected = {tensor(
                    std::vector<double>{-0.819660112501051, 0.41640786499873883, -0.11145618000168156,
                                        0.12461179749810825, 0.5967477524976879, -0.16718427000252234,
                                        -0.9868443825035733, 0.2492235949962165, -0.2786404500042039,
                                        -0.042572472504414094, 0.4295634824951655, -0.3343685400050447,
                                        0.8459713474939043, 0.08203932499369415, -0.44582472000672624,
                                        0.29024325749306357, 0.2623792124926432, -0.501552810007567},
                    {1, 3, 3, 2})},
                .oracle = "np.add.reduceat(np.add.reduceat(x, [0, 2, 3], 1), [0, 1, 3], 2) / np.outer([2, 1, "
                          "2], [1, 2, 1])[:, :, None]"}};
         }},

    {.name = "avg_pool_gradient",
     .doc = "The adjoint of means over windows.",
     .tensorflow = "AvgPoolGrad",
     .args = {"dy"},
     .infer = infer_avg_gradient,
     .forward = [](const Call& c,
                   std::span<Tensor> y) { kernels::avg_pool_gradient(pooling_of(c), c.x[0], y[0]); },
     .rule = linear([](const Call& c, const Tensor& v) { return avg(c.attrs<PoolAttrs>(), v); }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3, 2, 3}, -1, 1)}, .attrs = window({5, 4}, {3, 2}, {1, 2})},
               {.inputs = {uniform({2, 3, 37}, -1, 1)}, .attrs = window({4, 5}, 3, 2, Padding::same)},
               {.inputs = {uniform({1, 3, 2, 1}, -1, 1)},
                .attrs = window({5, 4}, {3, 2}, {1, 2}),
                .expected = {f64({1, 5, 4, 1},
                                 {-0.12732200375003502, -0.12732200375003502, 0.07868932583326327,
                                  0.07868932583326327,  -0.17595468166680678, -0.17595468166680678,
                                  0.2360679774997898,   0.2360679774997898,   -0.1458980337503153,
                                  -0.1458980337503153,  0.1388026216662463,   0.1388026216662463,
                                  -0.01857603000028026, -0.01857603000028026, 0.06011329583298301,
                                  0.06011329583298301,  0.030056647916491503, 0.030056647916491503,
                                  -0.09726535583354352, -0.09726535583354352})},
                .oracle = "torch.nn.functional.conv_transpose2d(torch.tensor(dy).permute(0, 3, 1, 2), "
                          "torch.full((1, 1, 3, 2), 1 / 6, dtype=torch.float64), stride=(1, 2)).permute(0, "
                          "2, 3, 1).numpy()"}};
         }},
};

Tensor max_scatter(const PoolAttrs& a, const Tensor& dy, const Tensor& x) {
  return find(table, "max_pool_scatter").with(a, dy, x);
}
Tensor max_gather(const PoolAttrs& a, const Tensor& v, const Tensor& x) {
  return find(table, "max_pool_gather").with(a, v, x);
}
Tensor avg_gradient(const PoolAttrs& a, const Tensor& dy) {
  return find(table, "avg_pool_gradient").with(a, dy);
}
Tensor max_of(const PoolAttrs& a, const Tensor& x) { return find(table, "max_pool2d").with(a, x); }
Tensor avg(const PoolAttrs& a, const Tensor& x) { return find(table, "avg_pool2d").with(a, x); }

Pool3dOptions in_volume(const Pool1dOptions& o) {
  constexpr std::int64_t as_window = Pool2dOptions::kAsWindow;
  return {.window = in_row(o.window),
          .strides = o.stride == as_window ? DepthHeightWidth(as_window) : in_row(o.stride),
          .padding = in_row(o.padding)};
}
Pool3dOptions in_volume(const Pool2dOptions& o) {
  constexpr std::int64_t as_window = Pool2dOptions::kAsWindow;
  return {.window = in_volume(o.window),
          .strides = o.strides == HeightWidth(as_window) ? DepthHeightWidth(as_window) : in_volume(o.strides),
          .padding = in_volume(o.padding)};
}

// Kernels of maxima number cells in the dtype of x.
void check_cells(const Op& op, DepthHeightWidth window, int axes) {
  constexpr double most = 1 << 24;
  if (static_cast<double>(window.depth) * static_cast<double>(window.height) *
          static_cast<double>(window.width) >
      most)
    throw_error<ShapeError>("{}: window is {}; more than 2^24 cells are too many", op.name,
                            text_of(window, axes));
}

// The window of an op over x, which is checked.
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
Tensor pool(const Op& op, int axes, const Tensor& x, const Pool3dOptions& o) {
  const WindowAttrs a = window_over(op, axes, x, o);
  return axes == 3 ? op.with(volume_pool_of(a), x) : op.with(pool_of(a), x);
}
Tensor max_pool(const Op& op, int axes, const Tensor& x, const Pool3dOptions& o) {
  check_cells(op, o.window, axes);
  return pool(op, axes, x, o);
}

// Where windows begin, and the extent at the end. Graham 2014, section 3: random windows are of two extents
// in any order; pseudo-random ones are ceil(a (i + u)) with one random u.
std::vector<std::int64_t> bounds_of(std::string_view name, std::int64_t extent, double ratio,
                                    bool pseudo_random, random::Key key) {
  if (!(ratio >= 1 && ratio <= static_cast<double>(extent)))
    throw_error<ArgumentError>("{}: a ratio is {}; use 1..{}", name, ratio, extent);
  const auto outputs = static_cast<std::int64_t>(std::floor(static_cast<double>(extent) / ratio));
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

Fractional fractional(const Op& op, const Tensor& x, const FractionalOptions& o, random::Key key) {
  if (!is_floating(x.dtype()))
    throw_error<DTypeError>("{}: takes f32 or f64, use astype: x is {}", op.name, x.spec());
  if (x.ndim() < 3)
    throw_error<ShapeError>("{}: x needs the axes height, width and channels: x is {}", op.name, x.spec());
  const std::vector<std::int64_t> rows =
      bounds_of(op.name, x.shape()[x.ndim() - 3], o.height_ratio, o.pseudo_random, key.split(0));
  const std::vector<std::int64_t> columns =
      bounds_of(op.name, x.shape()[x.ndim() - 2], o.width_ratio, o.pseudo_random, key.split(1));
  const PoolAttrs a = pool_of(rows, columns, o.overlapping);
  check_cells(op, {1, a.pool->rows.widest(), a.pool->columns.widest()}, 2);
  return {op.with(a, x), tensor(rows), tensor(columns)};
}

}   // namespace

Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options) {
  return max_pool(find(table, "max_pool1d"), 1, x, in_volume(options));
}
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  return max_pool(find(table, "max_pool2d"), 2, x, in_volume(options));
}
Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options) {
  return max_pool(find(table, "max_pool3d"), 3, x, options);
}
MaxAndPosition max_pool_with_argmax(const Tensor& x, const Pool2dOptions& options, bool through_all_images) {
  const Op& op = find(table, "max_pool_with_argmax");
  check_cells(op, in_volume(options.window), 2);
  PoolAttrs a = pool_of(window_over(op, 2, x, in_volume(options)));
  a.through = through_all_images;
  const std::vector<Tensor> y = op.run(std::span(&x, 1), Attrs(a));
  return {y[0], y[1]};
}

Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options) {
  return pool(find(table, "avg_pool1d"), 1, x, in_volume(options));
}
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) {
  return pool(find(table, "avg_pool2d"), 2, x, in_volume(options));
}
Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options) {
  return pool(find(table, "avg_pool3d"), 3, x, options);
}

Fractional fractional_max_pool(const Tensor& x, const FractionalOptions& options, random::Key key) {
  return fractional(find(table, "fractional_max_pool"), x, options, key);
}
Fractional fractional_avg_pool(const Tensor& x, const FractionalOptions& options, random::Key key) {
  return fractional(find(table, "fractional_avg_pool"), x, options, key);
}

std::span<const Op> pool_ops() { return table; }

}   // namespace tapedeck
