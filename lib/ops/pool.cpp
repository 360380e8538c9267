// Pooling. In: images [..., height, width, channels]. Out: images of other extents.
#include "kernels/pool.h"

#include "base/format.h"
#include "ops/samples.h"
#include "ops/window.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

Spec infer_pool(const Call& c) {
  require_floating(c, 0);
  require_rank(c, 0);
  require_images(c, 0, input_of(c), channels_of(c.x[0]));
  return {c.x[0].dtype(), behind(front_of(c.x[0]), output_of(c), channels_of(c.x[0]))};
}

Spec infer_avg_gradient(const Call& c) {
  require_floating(c, 0);
  require_rank(c, 0);
  require_images(c, 0, output_of(c), channels_of(c.x[0]));
  return {c.x[0].dtype(), behind(front_of(c.x[0]), input_of(c), channels_of(c.x[0]))};
}

// c.x[0], images of these extents, with c.x[1], which says where the largest cells are; further axes stand in front.
void require_beside_x(const Call& c, HeightWidth extents) {
  require_one_dtype(c);
  require_rank(c, 1);
  require_images(c, 0, extents, channels_of(c.x[1]));
  require_images(c, 1, input_of(c), channels_of(c.x[1]));
  const Shape many = front_of(c.x[0]), few = front_of(c.x[1]);
  if (many.ndim() < few.ndim() || Shape(many.dims().last(static_cast<std::size_t>(few.ndim()))) != few) throw_shape_error(c, "numbers of images differ");
}
Spec infer_scatter(const Call& c) {
  require_beside_x(c, output_of(c));
  return {c.x[0].dtype(), behind(front_of(c.x[0]), input_of(c), channels_of(c.x[0]))};
}
Spec infer_gather(const Call& c) {
  require_beside_x(c, input_of(c));
  return {c.x[0].dtype(), behind(front_of(c.x[0]), output_of(c), channels_of(c.x[0]))};
}

kernels::Pool2d pool_of(const Call& c) { return {c.attrs<Window2d>(), front_of(c.x[0]).size(), channels_of(c.x[0])}; }

Tensor max_scatter(const Window2d& w, const Tensor& dy, const Tensor& x);
Tensor max_gather(const Window2d& w, const Tensor& v, const Tensor& x);
Tensor avg_gradient(const Window2d& w, const Tensor& dy);
Tensor avg(const Window2d& w, const Tensor& x);

Tensor f64(const Shape& shape, const std::vector<double>& v) { return tensor(v, shape); }

constexpr Op table[] = {
    {.name = "max_pool2d",
     .doc = "The largest element of each channel in each window; the gradient goes to the first of them.",
     .tensorflow = "MaxPool MaxPoolV2",
     .args = {"x"},
     .infer = infer_pool,
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::max_pool2d(pool_of(c), c.x[0], y[0]); },
     .rule = custom(
         {.x = 1},
         [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) { dx[0] = max_scatter(c.attrs<Window2d>(), std::move(dy[0]).dense(), c.x[0]); },
         [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = max_gather(c.attrs<Window2d>(), dx[0], c.x[0]); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {distinct({2, 5, 4, 3})}, .attrs = window({5, 4}, {3, 2}, {1, 2})},
           {.inputs = {distinct({4, 5, 37})}, .attrs = window({4, 5}, 3, 2, Padding::same)},
           {.inputs = {distinct({2, 2, 3, 3, 1})}, .attrs = window(3, 2, 3, {1, 0, 1, 1})},
           {.inputs = {uniform({0, 4, 4, 2}, -1, 1)}, .attrs = window(4, 2, 2)},
           {.inputs = {distinct({1, 5, 4, 2})}, .attrs = window({5, 4}, {3, 2}, {1, 2}),
            .expected = {f64({1, 3, 2, 2}, {-0.5699999999999998, 1.8300000000000003, 1.3300000000000003, -0.16999999999999996, 1.7300000000000002, 1.6300000000000001,
                        1.1300000000000001, -0.3699999999999999, 1.7300000000000002, 1.4300000000000004, 0.8300000000000003, 1.9300000000000004})},
            .oracle = "torch.nn.functional.max_pool2d(torch.tensor(x).permute(0, 3, 1, 2), (3, 2), stride=(1, 2)).permute(0, 2, 3, 1).numpy()"},
           {.inputs = {distinct({1, 5, 4, 1})}, .attrs = window({5, 4}, 3, 2, 1),
            .expected = {f64({1, 3, 2, 1}, {0.43000000000000016, 0.9300000000000002, 0.33000000000000007, 0.8300000000000001, 0.23000000000000018, 0.7300000000000002})},
            .oracle = "torch.nn.functional.max_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 3, stride=2, padding=1).permute(0, 2, 3, 1).numpy()"}};
     }},

    {.name = "max_pool2d_scatter",
     .doc = "The gradient of max_pool2d: zeros of x's shape, to which dy is added where x has the first largest element of each window.",
     .args = {"dy", "x"},
     .infer = infer_scatter,
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::max_pool2d_scatter(pool_of(c), c.x[0], c.x[1], front_of(c.x[1]).size(), y[0]); },
     .rule = linear([](const Call& c, const Tensor& v) { return max_gather(c.attrs<Window2d>(), v, c.x[1]); }, {.x = 0b10}),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({2, 3, 2, 3}, -1, 1), distinct({2, 5, 4, 3})}, .attrs = window({5, 4}, {3, 2}, {1, 2})},
           {.inputs = {uniform({3, 2, 3, 37}, -1, 1), distinct({4, 5, 37})}, .attrs = window({4, 5}, 3, 2, Padding::same)},
           {.inputs = {uniform({1, 2, 2, 2}, -1, 1), distinct({1, 4, 4, 2})}, .attrs = window(4, 2, 2),
            .expected = {f64({1, 4, 4, 2}, {0.0, 0.0, -0.7639320225002102, 0.4721359549995796, 0.0, 0.0, -0.2917960675006306, 0.9442719099991592, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
                        0.0, 0.0, 0.0, -0.5835921350012612, 0.0, 0.0, 0.6524758424985286, -0.11145618000168156, 0.18033988749894903, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0})},
            .oracle = "torch.nn.functional.max_unpool2d(torch.tensor(dy).permute(0, 3, 1, 2), torch.nn.functional.max_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 2, return_indices=True)[1], 2).permute(0, 2, 3, 1).numpy()"}};
     }},

    {.name = "max_pool2d_gather",
     .doc = "The tangent of max_pool2d: the elements of v where x has the first largest element of each window.",
     .args = {"v", "x"},
     .infer = infer_gather,
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::max_pool2d_gather(pool_of(c), c.x[0], c.x[1], front_of(c.x[1]).size(), y[0]); },
     .rule = linear([](const Call& c, const Tensor& dy) { return max_scatter(c.attrs<Window2d>(), dy, c.x[1]); }, {.x = 0b10}),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({2, 5, 4, 3}, -1, 1), distinct({2, 5, 4, 3}, 1)}, .attrs = window({5, 4}, {3, 2}, {1, 2})},
           {.inputs = {uniform({3, 4, 5, 37}, -1, 1), distinct({4, 5, 37}, 1)}, .attrs = window({4, 5}, 3, 2, Padding::same)},
           {.inputs = {uniform({1, 4, 5, 2}, -1, 1), distinct({1, 4, 5, 2}, 1)}, .attrs = window({4, 5}, 3),
            .expected = {f64({1, 2, 3, 2}, {0.18033988749894903, 0.13776741499453493, 0.18033988749894903, 0.2492235949962165, 0.18033988749894903, 0.36067977499789805,
                        0.31810730249348396, 0.13776741499453493, 0.06888370749726747, 0.2492235949962165, 0.2066511224918024, 0.2492235949962165})},
            .oracle = "torch.gather(torch.tensor(v).permute(0, 3, 1, 2).reshape(1, 2, -1), 2, torch.nn.functional.max_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 3, stride=1, return_indices=True)[1].reshape(1, 2, -1)).reshape(1, 2, 2, 3).permute(0, 2, 3, 1).numpy()"}};
     }},

    {.name = "avg_pool2d",
     .doc = "The mean of each channel in each window, over the elements that belong to the image.",
     .tensorflow = "AvgPool",
     .args = {"x"},
     .infer = infer_pool,
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::avg_pool2d(pool_of(c), c.x[0], y[0]); },
     .rule = linear([](const Call& c, const Tensor& dy) { return avg_gradient(c.attrs<Window2d>(), dy); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({2, 5, 4, 3}, -1, 1)}, .attrs = window({5, 4}, {3, 2}, {1, 2})},
           {.inputs = {uniform({2, 2, 3, 3, 1}, -1, 1)}, .attrs = window(3, 2, 3, {1, 0, 1, 1})},
           {.inputs = {uniform({0, 4, 4, 2}, -1, 1)}, .attrs = window(4, 2, 2)},
           {.inputs = {uniform({1, 5, 4, 2}, -1, 1)}, .attrs = window({5, 4}, {3, 2}, {1, 2}),
            .expected = {f64({1, 3, 2, 2}, {-0.639320225002102, 0.5967477524976879, 0.30495168499705727, -0.4589803375031529, -0.4174430716704502, 0.4852915724960063,
                        0.1934955049953757, -0.5704365175048345, -0.1955659183387984, 0.37383539249432474, 0.08203932499369415, -0.34855936417318273})},
            .oracle = "torch.nn.functional.avg_pool2d(torch.tensor(x).permute(0, 3, 1, 2), (3, 2), stride=(1, 2)).permute(0, 2, 3, 1).numpy()"},
           {.inputs = {uniform({1, 5, 4, 1}, -1, 1)}, .attrs = window({5, 4}, 3, 2, 1),
            .expected = {f64({1, 3, 2, 1}, {-0.17376207875073568, 0.18033988749894903, -0.25735421375199685, 0.0411921969421323, -0.340946348753258, 0.013155617496426686})},
            .oracle = "torch.nn.functional.avg_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 3, stride=2, padding=1, count_include_pad=False).permute(0, 2, 3, 1).numpy()"},
           {.inputs = {uniform({1, 3, 3, 1}, -1, 1)}, .attrs = window(3, 2, 2, Padding::same),
            .expected = {f64({1, 2, 2, 1}, {0.20820393249936942, -0.4376941012509459, 0.27050983124842354, -0.8753882025018918})},
            .oracle = "torch.nn.functional.avg_pool2d(torch.tensor(x).permute(0, 3, 1, 2), 2, ceil_mode=True, count_include_pad=False).permute(0, 2, 3, 1).numpy()"}};
     }},

    {.name = "avg_pool2d_gradient",
     .doc = "The adjoint of avg_pool2d.",
     .tensorflow = "AvgPoolGrad",
     .args = {"dy"},
     .infer = infer_avg_gradient,
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::avg_pool2d_gradient(pool_of(c), c.x[0], y[0]); },
     .rule = linear([](const Call& c, const Tensor& v) { return avg(c.attrs<Window2d>(), v); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({2, 3, 2, 3}, -1, 1)}, .attrs = window({5, 4}, {3, 2}, {1, 2})},
           {.inputs = {uniform({2, 3, 37}, -1, 1)}, .attrs = window({4, 5}, 3, 2, Padding::same)},
           {.inputs = {uniform({1, 3, 2, 1}, -1, 1)}, .attrs = window({5, 4}, {3, 2}, {1, 2}),
            .expected = {f64({1, 5, 4, 1}, {-0.12732200375003502, -0.12732200375003502, 0.07868932583326327, 0.07868932583326327, -0.17595468166680678, -0.17595468166680678,
                        0.2360679774997898, 0.2360679774997898, -0.1458980337503153, -0.1458980337503153, 0.1388026216662463, 0.1388026216662463, -0.01857603000028026,
                        -0.01857603000028026, 0.06011329583298301, 0.06011329583298301, 0.030056647916491503, 0.030056647916491503, -0.09726535583354352, -0.09726535583354352})},
            .oracle = "torch.nn.functional.conv_transpose2d(torch.tensor(dy).permute(0, 3, 1, 2), torch.full((1, 1, 3, 2), 1 / 6, dtype=torch.float64), stride=(1, 2)).permute(0, 2, 3, 1).numpy()"}};
     }},
};

Tensor max_scatter(const Window2d& w, const Tensor& dy, const Tensor& x) { return find(table, "max_pool2d_scatter").with(w, dy, x); }
Tensor max_gather(const Window2d& w, const Tensor& v, const Tensor& x) { return find(table, "max_pool2d_gather").with(w, v, x); }
Tensor avg_gradient(const Window2d& w, const Tensor& dy) { return find(table, "avg_pool2d_gradient").with(w, dy); }
Tensor avg(const Window2d& w, const Tensor& x) { return find(table, "avg_pool2d").with(w, x); }

Window2d window_over(const Op& op, const Tensor& x, const Pool2dOptions& o) {
  const Tensor* inputs[] = {&x};
  const Call c{.op = op, .x = {inputs, 1}};
  const bool side_by_side = o.strides == HeightWidth(Pool2dOptions::kAsWindow);
  check_numbers(op, "window is", o.window);
  if (!side_by_side) check_numbers(op, "strides are", o.strides);
  check_padding(op, o.padding, o.window);
  require_rank(c, 0);
  return checked_window(c, "the window is", o.window, side_by_side ? o.window : o.strides, 1, o.padding);
}
Tensor pool(const Op& op, const Tensor& x, const Pool2dOptions& o) { return op.with(window_over(op, x, o), x); }

}  // namespace

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  // The kernels number cells in the dtype of x.
  if (const auto [rows, columns] = options.window; static_cast<double>(rows) * static_cast<double>(columns) > 1 << 24)
    throw_error<ShapeError>("max_pool2d: window is {}×{}; more than 2^24 cells are too many", rows, columns);
  return pool(find(table, "max_pool2d"), x, options);
}
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) { return pool(find(table, "avg_pool2d"), x, options); }

// Positions are gathered as the elements are, from an image of the numbers 0, 1, …; f64 holds all of them exactly.
MaxAndPosition max_pool_with_argmax(const Tensor& x, const Pool2dOptions& options, bool through_all_images) {
  const Tensor y = max_pool2d(x, options);
  const Window2d w = window_over(find(table, "max_pool2d"), x, options);
  const Tensor chosen = astype(stop_gradient(x), DType::f64);
  const std::int64_t size = x.shape()[x.ndim() - 3] * x.shape()[x.ndim() - 2] * channels_of(x);
  const Tensor numbers = through_all_images ? reshape(arange(0, static_cast<double>(x.size()), 1, DType::f64), x.shape())
                                            : broadcast_to(reshape(arange(0, static_cast<double>(size), 1, DType::f64), {x.shape()[x.ndim() - 3], x.shape()[x.ndim() - 2], channels_of(x)}), x.shape());
  // Where a window has NaN, the first one.
  const Tensor position = max_gather(w, numbers, chosen), first_nan = max_gather(w, numbers, astype(not_equal(chosen, chosen), DType::f64));
  return {y, astype(where(equal(position, position), position, first_nan), DType::i64)};
}

std::span<const Op> pool_ops() { return table; }

}  // namespace tapedeck
