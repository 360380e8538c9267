// Elements selected along an axis. In: a tensor and an index for each element of the result. Out: those
// elements, or sums of them.
#include "ops/layout/take_along_axis.h"

#include "core/format.h"
#include "kernels/layout/index_lists.h"
#include "kernels/layout/take_along_axis.h"
#include "ops/axes.h"
#include "ops/layout/any_dtype.h"
#include "ops/layout/positions.h"
#include "tapedeck/ops/index.h"
#include "tapedeck/ops/take_along_axis.h"

namespace tapedeck {
namespace {

Spec infer_take(const Call& c) {
  require_indices(c, 1);
  const Tensor &x = c.x[0], &indices = c.x[1];
  const auto& [axis, axes] = c.attrs<TakeAttrs>();
  require_axes(c, axes);
  const Shape last(x.shape().dims().last(static_cast<std::size_t>(axes)));
  if (indices.ndim() != axes || replaced(indices.shape(), axes + axis, 1, {last[axes + axis]}) != last)
    c.throw_shape_error(fmt::format("shapes must match except along axis {}", x.ndim() + axis));
  return {x.dtype(), replaced(x.shape(), x.ndim() + axis, 1, {indices.shape()[axes + axis]})};
}

Spec infer_add(const Call& c) {
  require_indices(c, 1);
  const Tensor &x = c.x[0], &indices = c.x[1];
  const auto& [shape, axis] = c.attrs<AddAttrs>();
  if (x.dtype() == DType::boolean) c.throw_dtype_error("bool cannot be added");
  require_axes(c, shape.ndim());
  const int at = shape.ndim() + axis;
  if (indices.ndim() != shape.ndim() || replaced(indices.shape(), at, 1, {shape[at]}) != shape ||
      Shape(x.shape().dims().last(static_cast<std::size_t>(shape.ndim()))) != indices.shape())
    c.throw_shape_error(fmt::format("x and indices do not fit shape {} along axis {}", shape, at));
  return {x.dtype(), behind_extra(x, shape.ndim(), shape)};
}

using Kernel2 = std::int64_t (*)(const Tensor&, const Tensor&, const kernels::AxisView&, std::int64_t,
                                 Tensor&);

// `indexed` is the tensor that the indices refer to.
void run(const Call& c, Kernel2 kernel, const Tensor& indexed, std::string_view name, int from_end,
         Tensor& y) {
  const Tensor& indices = c.x[1];
  const int axis = indexed.ndim() + from_end;
  const std::int64_t outside =
      kernel(c.x[0], indices, {indexed.shape(), axis}, indices.shape()[indices.ndim() + from_end], y);
  if (outside < 0) return;
  throw_error<ShapeError>("{}: index {} at position {} is out of range for axis {} of {}, {}", c.op.name,
                          kernels::index_at(indices, outside), outside, axis, name, indexed.spec());
}

Tensor take(const Tensor& x, const Tensor& indices, int axis);

constexpr Op kTakeAlongAxis = {
    .name = "take_along_axis",
    .doc = "Single elements of x along an axis: y[…, k, …] = x[…, indices[…, k, …], …].",
    .args = {"x", "indices"},
    .infer = infer_take,
    .forward = moves([](const Call& c, std::span<Tensor> y) {
      run(c, kernels::take_along_axis, c.x[0], "x", c.attrs<TakeAttrs>().axis, y[0]);
    }),
    .rule = Rule::linear(
        [](const Call& c, const Tensor& dy) {
          const auto& [axis, axes] = c.attrs<TakeAttrs>();
          return add_along_axis(dy, c.x[1], Shape(c.x[0].shape().dims().last(static_cast<std::size_t>(axes))),
                                axis);
        },
        {.x = 0b10}),
};

constexpr Op kAddAlongAxis = {
    .name = "add_along_axis",
    .doc =
        "The adjoint of take_along_axis: zeros of a given shape, with y[…, indices[…, k, …], …] += x[…, "
        "k, …].",
    .args = {"x", "indices"},
    .infer = infer_add,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          run(c, kernels::add_along_axis, y[0], "the result", c.attrs<AddAttrs>().axis, y[0]);
        },
    .rule = Rule::linear(
        [](const Call& c, const Tensor& dy) { return take(dy, c.x[1], c.attrs<AddAttrs>().axis); },
        {.x = 0b10}),
};

constexpr const Op* take_along_axis_table[] = {&kTakeAlongAxis, &kAddAlongAxis};

Tensor take(const Tensor& x, const Tensor& indices, int axis) {
  return kTakeAlongAxis(x, indices, TakeAttrs{axis, indices.ndim()});
}

}   // namespace

Tensor take_along_axis(const Tensor& x, const Tensor& indices, int axis) {
  return kTakeAlongAxis(x, indices,
                        TakeAttrs{checked_axis(kTakeAlongAxis, axis, x.ndim()) - x.ndim(), x.ndim()});
}

Tensor add_along_axis(const Tensor& x, const Tensor& indices, const Shape& shape, int axis) {
  return kAddAlongAxis(x, indices, AddAttrs{shape, axis});
}

std::span<const Op* const> take_along_axis_ops() { return take_along_axis_table; }

}   // namespace tapedeck
