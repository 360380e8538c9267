// Reductions. In: a tensor and axes. Out: sums, means, maxima and their positions.
#include "kernels/reduce.h"

#include <bit>

#include "ops/axes.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

struct ReduceAttrs { unsigned axes; bool keepdims; };

Shape reduced(const Call& c) {
  const auto& [axes, keepdims] = c.attrs<ReduceAttrs>();
  return without(c.x[0].shape(), axes, keepdims);
}

// Elements of x for each of y.
std::int64_t count_of(const Call& c) {
  const Shape& x = c.x[0].shape();
  std::int64_t n = 1;
  for (int i = 0; i < x.ndim(); ++i) if (c.attrs<ReduceAttrs>().axes >> i & 1) n *= x[x.ndim() - 1 - i];
  return n;
}

Spec infer_sum(const Call& c) {
  if (size_of(c.x[0].dtype()) == 1) throw_dtype_error(c, "u8 and bool are not added up, use astype");
  return {c.x[0].dtype(), reduced(c)};
}

Spec infer_mean(const Call& c) {
  require_floating(c, 0);
  return {c.x[0].dtype(), reduced(c)};
}

Spec infer_max(const Call& c) {
  if (c.x[0].dtype() == DType::boolean) throw_dtype_error(c, "bool has no order, use astype");
  if (count_of(c) == 0) throw_shape_error(c, "no elements to choose from");
  return {c.x[0].dtype(), reduced(c)};
}

// dy with the reduced axes back in their places, as extents of 1.
Tensor with_axes(const Call& c, const Tensor& dy) {
  const auto& [axes, keepdims] = c.attrs<ReduceAttrs>();
  return keepdims ? dy : reshape(dy, behind_extra(dy, c.y[0].ndim(), without(c.x[0].shape(), axes, true)));
}
Tensor spread(const Call& c, const Tensor& dy) { return broadcast_to(with_axes(c, dy), behind_extra(dy, c.y[0].ndim(), c.x[0].shape())); }

std::vector<int> axes_of(const Call& c) {
  std::vector<int> axes;
  for (int i = 0; i < Shape::kMaxRank; ++i) if (c.attrs<ReduceAttrs>().axes >> i & 1) axes.push_back(-1 - i);
  return axes;
}

// What each element of x has of the gradient of its maximum: equal ones share it.
Tensor share_of_max(const Call& c) {
  const Tensor largest = astype(equal(c.x[0], with_axes(c, c.y[0])), c.x[0].dtype());
  return largest / sum(largest, axes_of(c), true);
}

OwnedAttrs over(unsigned axes, bool keepdims = false) { return Attrs(ReduceAttrs{axes, keepdims}); }

constexpr Op table[] = {
    {.name = "sum",
     .doc = "Sum of x over axes: y[j] = Σᵢ x[i, j].",
     .args = {"x"},
     .infer = infer_sum,
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::sum(c.x[0], c.attrs<ReduceAttrs>().axes, y[0]); },
     .rule = linear([](const Call& c, const Tensor& dy) { return spread(c, dy); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({}, -1, 1)}, .attrs = over(0)},
           {.inputs = {uniform({37}, -1, 1)}, .attrs = over(1)},
           {.inputs = {uniform({3, 37, 2}, -1, 1)}, .attrs = over(0b101, true)},
           {.inputs = {uniform({2, 0, 3}, -1, 1)}, .attrs = over(0b010)},
           {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})}, .attrs = over(0b10), .expected = {f64({5, 7, 9})}, .oracle = "np.sum(x, axis=0)"},
           {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})}, .attrs = over(0b01, true), .expected = {tensor(std::vector<double>{6, 15}, {2, 1})}, .oracle = "np.sum(x, axis=1, keepdims=True)"},
           {.inputs = {tensor({{1, 2}, {3, 4}}, DType::i64)}, .attrs = over(0b11), .expected = {tensor(10, DType::i64)}, .oracle = "np.sum(x)"}};
     }},

    {.name = "mean",
     .doc = "Arithmetic mean of x over axes: y[j] = Σᵢ x[i, j] / n.",
     .args = {"x"},
     .infer = infer_mean,
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::mean(c.x[0], c.attrs<ReduceAttrs>().axes, y[0]); },
     .rule = linear([](const Call& c, const Tensor& dy) { return spread(c, dy / static_cast<double>(count_of(c))); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({}, -1, 1)}, .attrs = over(0)},
           {.inputs = {uniform({37}, -1, 1)}, .attrs = over(1)},
           {.inputs = {uniform({3, 37, 2}, -1, 1)}, .attrs = over(0b101)},
           {.inputs = {f64({{1, 2, 4}, {4, 6, 5}})}, .attrs = over(0b10), .expected = {f64({2.5, 4, 4.5})}, .oracle = "np.mean(x, axis=0)"},
           {.inputs = {f64({{1, 2, 6}, {4, 6, 5}})}, .attrs = over(0b01, true), .expected = {tensor(std::vector<double>{3, 5}, {2, 1})}, .oracle = "np.mean(x, axis=1, keepdims=True)"}};
     }},

    {.name = "max",
     .doc = "Largest element of x over axes: y[j] = maxᵢ x[i, j]; equal ones share the gradient.",
     .args = {"x"},
     .infer = infer_max,
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::max(c.x[0], c.attrs<ReduceAttrs>().axes, y[0]); },
     .rule = custom(
         {.x = 1, .y = true},
         [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) { dx[0] = with_axes(c, std::move(dy[0]).dense()) * share_of_max(c); },
         [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = sum(share_of_max(c) * dx[0], axes_of(c), c.attrs<ReduceAttrs>().keepdims); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({}, -1, 1)}, .attrs = over(0)},
           {.inputs = {distinct({37})}, .attrs = over(1)},
           {.inputs = {distinct({3, 37, 2})}, .attrs = over(0b101, true)},
           {.inputs = {f64({{1, -2, 3}, {-4, 5, 6}})}, .attrs = over(0b10), .expected = {f64({1, 5, 6})}, .oracle = "np.max(x, axis=0)"},
           {.inputs = {tensor({{1, -2}, {-3, 4}, {0, 2}}, DType::i32)}, .attrs = over(0b01, true), .expected = {tensor({{1}, {4}, {2}}, DType::i32)},
            .oracle = "np.max(x, axis=1, keepdims=True)"}};
     }},

    {.name = "argmax",
     .doc = "Index of the first largest element of x along an axis.",
     .args = {"x"},
     .infer = [](const Call& c) -> Spec { return {DType::i64, infer_max(c).shape}; },
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::argmax(c.x[0], -1 - std::countr_zero(c.attrs<ReduceAttrs>().axes), y[0]); },
     .rule = none(),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {distinct({3, 37, 2})}, .attrs = over(0b010, true)},
           {.inputs = {f64({{1, -2, 3}, {-4, 5, 5}})}, .attrs = over(0b01), .expected = {tensor({2, 1}, DType::i64)}, .oracle = "np.argmax(x, axis=1)"},
           {.inputs = {f64({{1, -2, 3}, {-4, 5, 5}})}, .attrs = over(0b10), .expected = {tensor({0, 1, 1}, DType::i64)}, .oracle = "np.argmax(x, axis=0)"}};
     }},
};

Tensor reduce(const Op& op, const Tensor& x, const Axes& axes, bool keepdims) { return op.with(ReduceAttrs{mask_of(op, axes, x.ndim()), keepdims}, x); }

}  // namespace

Tensor sum(const Tensor& x, const Axes& axes, bool keepdims) { return reduce(find(table, "sum"), x, axes, keepdims); }
Tensor mean(const Tensor& x, const Axes& axes, bool keepdims) { return reduce(find(table, "mean"), x, axes, keepdims); }
Tensor max(const Tensor& x, const Axes& axes, bool keepdims) { return reduce(find(table, "max"), x, axes, keepdims); }
Tensor argmax(const Tensor& x, int axis, bool keepdims) { return reduce(find(table, "argmax"), x, axis, keepdims); }

std::span<const Op> reduce_ops() { return table; }

}  // namespace tapedeck
