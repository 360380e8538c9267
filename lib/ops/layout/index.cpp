// Gather and scatter. In: a tensor and indices, which are checked here. Out: the selected rows, or sums of
// rows.
#include "tapedeck/ops/index.h"

#include "core/format.h"
#include "core/storage.h"
#include "kernels/layout/gather_scatter.h"
#include "ops/axes.h"
#include "ops/layout/any_dtype.h"
#include "ops/layout/index.h"
#include "ops/layout/positions.h"
#include "tapedeck/ops/array.h"

namespace tapedeck {
namespace {

// The axes of indices after the batch axes.
Shape chosen(const Tensor& indices, int batch) {
  return Shape(indices.shape().dims().last(static_cast<std::size_t>(indices.ndim() - batch)));
}

// Throws ShapeError unless the first `batch` axes of indices match the axes of `indexed` from `front` on.
void require_batch(const Call& c, const Shape& indexed, int front, int batch) {
  for (int d = 0; d < batch; ++d)
    if (d >= c.x[1].ndim() || c.x[1].shape()[d] != indexed[front + d])
      c.throw_shape_error(fmt::format("the first {} axes differ", batch));
}

Spec infer_gather(const Call& c) {
  require_indices(c, 1);
  const Tensor& x = c.x[0];
  const auto& [axis, batch, axes] = c.attrs<GatherAttrs>();
  require_axes(c, std::max(axes, -axis));
  require_batch(c, x.shape(), x.ndim() - axes, batch);
  return {x.dtype(), replaced(x.shape(), x.ndim() + axis, 1, chosen(c.x[1], batch))};
}

Spec infer_scatter_add(const Call& c) {
  require_indices(c, 1);
  const Tensor &x = c.x[0], &indices = c.x[1];
  const auto& [shape, axis, batch] = c.attrs<ScatterAttrs>();
  if (x.dtype() == DType::boolean) c.throw_dtype_error("bool cannot be added");
  if (indices.ndim() < batch) c.throw_shape_error(fmt::format("the first {} axes differ", batch));
  const Shape along = chosen(indices, batch);
  const int front = x.ndim() - (shape.ndim() - 1 + along.ndim());
  if (front < 0) c.throw_shape_error(fmt::format("x has too few axes for shape {}", shape));
  const int at = front + shape.ndim() + axis;
  const Shape result = replaced(x.shape(), at, along.ndim(), Shape{shape[shape.ndim() + axis]});
  if (Shape(result.dims().last(static_cast<std::size_t>(shape.ndim()))) != shape ||
      replaced(result, at, 1, along) != x.shape())
    c.throw_shape_error(fmt::format("x does not fit shape {} along axis {}", shape, shape.ndim() + axis));
  require_batch(c, result, front, batch);
  return {x.dtype(), result};
}

// The batches of an x whose batch axes begin at axis `front` and that is indexed along `axis`.
kernels::IndexBatches index_batches(const Shape& x, int front, int batch, int axis) {
  if (batch == 0) return {};
  return {kernels::AxisView(x, front, batch).extent,
          kernels::AxisView(x, front + batch, axis - front - batch).extent};
}

void run_gather(const Call& c, std::span<Tensor> y) {
  const Tensor& x = c.x[0];
  const auto& [from_end, batch, axes] = c.attrs<GatherAttrs>();
  const int axis = x.ndim() + from_end;
  require_in_range(c, x, "x", axis);
  kernels::gather(x, c.x[1], kernels::AxisView(x.shape(), axis), y[0],
                  index_batches(x.shape(), x.ndim() - axes, batch, axis));
}

void run_scatter_add(const Call& c, std::span<Tensor> y) {
  const auto& [shape, from_end, batch] = c.attrs<ScatterAttrs>();
  const int axis = y[0].ndim() + from_end;
  require_in_range(c, y[0], "the result", axis);
  kernels::scatter_add(c.x[0], c.x[1], kernels::AxisView(y[0].shape(), axis), y[0],
                       index_batches(y[0].shape(), y[0].ndim() - shape.ndim(), batch, axis));
}

Spec infer_gather_nd(const Call& c) {
  const Tensor& x = c.x[0];
  const int axes = c.attrs<GatherNdAttrs>().axes;
  require_axes(c, axes);
  require_nd_indices(c, axes);
  return {x.dtype(), replaced(x.shape(), x.ndim() - axes, depth_of(c), entries_of(c))};
}

Spec infer_scatter_nd(const Call& c) {
  const Tensor& x = c.x[0];
  const Shape& shape = c.attrs<ScatterNdAttrs>().shape;
  require_nd_indices(c, shape.ndim());
  if (x.dtype() == DType::boolean) c.throw_dtype_error("bool cannot be added");
  const Shape last = replaced(shape, 0, depth_of(c), entries_of(c));
  if (x.ndim() < last.ndim() || behind_extra(x, last.ndim(), last) != x.shape())
    c.throw_shape_error(fmt::format("updates must be {} for shape {}", last, shape));
  return {x.dtype(), behind_extra(x, last.ndim(), shape)};
}

void run_gather_nd(const Call& c, std::span<Tensor> y) {
  const Tensor& x = c.x[0];
  const int axes = c.attrs<GatherNdAttrs>().axes, depth = depth_of(c);
  const Shape indexed(x.shape().dims().last(static_cast<std::size_t>(axes)));
  kernels::gather(x, flat_indices(c, indexed, "x", x.spec()),
                  kernels::AxisView(x.shape(), x.ndim() - axes, depth), y[0]);
}

void run_scatter_nd(const Call& c, std::span<Tensor> y) {
  const Shape& shape = c.attrs<ScatterNdAttrs>().shape;
  kernels::scatter_add(c.x[0], flat_indices(c, shape, "the result", y[0].spec()),
                       kernels::AxisView(y[0].shape(), y[0].ndim() - shape.ndim(), depth_of(c)), y[0]);
}

Gradient gather_vjp(const Call& c, const Tensor& dy);
Gradient scatter_add_vjp(const Call& c, const Tensor& dy);
Gradient gather_nd_vjp(const Call& c, const Tensor& dy);
Gradient scatter_nd_vjp(const Call& c, const Tensor& dy);

constexpr Op kGather = {
    .name = "gather",
    .doc = "Slices of x along an axis: y[…, k, …] = x[…, indices[k], …].",
    .tensorflow = "Gather GatherV2 ResourceGather",
    .args = {"x", "indices"},
    .infer = infer_gather,
    .forward = moves(run_gather),
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return gather_vjp(c, dy); }, {.x = 0b10}),
};

constexpr Op kScatterAdd = {
    .name = "scatter_add",
    .doc = "The adjoint of gather: zeros of a given shape, with y[…, indices[k], …] += x[…, k, …].",
    .args = {"x", "indices"},
    .infer = infer_scatter_add,
    .forward = run_scatter_add,
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return scatter_add_vjp(c, dy); }, {.x = 0b10}),
};

constexpr Op kGatherNd = {
    .name = "gather_nd",
    .doc =
        "Slices of x at the positions in the last axis of indices: y[k…, …] = x[indices[k…, 0], "
        "indices[k…, 1], …].",
    .tensorflow = "GatherNd ResourceGatherNd",
    .args = {"x", "indices"},
    .infer = infer_gather_nd,
    .forward = moves(run_gather_nd),
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return gather_nd_vjp(c, dy); }, {.x = 0b10}),
};

constexpr Op kScatterNd = {
    .name = "scatter_nd",
    .doc =
        "The adjoint of gather_nd: zeros of a given shape, with y[indices[k…, 0], indices[k…, 1], …] += "
        "updates[k…, …].",
    .tensorflow = "ScatterNd",
    .args = {"updates", "indices"},
    .infer = infer_scatter_nd,
    .forward = run_scatter_nd,
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return scatter_nd_vjp(c, dy); }, {.x = 0b10}),
};

constexpr const Op* index_table[] = {&kGather, &kScatterAdd, &kGatherNd, &kScatterNd};

// Along the first axis, as in an embedding, the gradient is IndexedSlices of the rows that were used.
// IndexedSlices cannot represent stacked cotangents, which are summed into a dense gradient.
Gradient gather_vjp(const Call& c, const Tensor& dy) {
  const Tensor &x = c.x[0], &indices = c.x[1];
  const auto& [axis, batch, axes] = c.attrs<GatherAttrs>();
  if (axis != -x.ndim() || dy.ndim() != c.y[0].ndim()) {
    const Shape shape(x.shape().dims().last(static_cast<std::size_t>(batch ? axes : x.ndim())));
    return kScatterAdd(dy, indices, ScatterAttrs{shape, axis, batch});
  }
  return IndexedSlices{reshape(dy, replaced(x.shape(), 0, 1, {indices.size()})),
                       reshape(indices, {indices.size()}), x.shape()};
}

Gradient scatter_add_vjp(const Call& c, const Tensor& dy) {
  const auto& [shape, axis, batch] = c.attrs<ScatterAttrs>();
  return kGather(dy, c.x[1], GatherAttrs{axis, batch, shape.ndim()});
}

Gradient gather_nd_vjp(const Call& c, const Tensor& dy) {
  return scatter_positions(
      dy, c.x[1], Shape(c.x[0].shape().dims().last(static_cast<std::size_t>(c.attrs<GatherNdAttrs>().axes))));
}

Gradient scatter_nd_vjp(const Call& c, const Tensor& dy) {
  return gather_positions(dy, c.x[1], c.attrs<ScatterNdAttrs>().shape.ndim());
}

}   // namespace

Tensor gather(const Tensor& x, const Tensor& indices, int axis) {
  return kGather(x, indices, GatherAttrs{checked_axis(kGather, axis, x.ndim()) - x.ndim()});
}

Tensor gather(const Tensor& x, const Tensor& indices, int axis, int batch_dims) {
  const int at = checked_axis(kGather, axis, x.ndim());
  if (batch_dims < 0 || batch_dims > at || batch_dims > indices.ndim())
    throw_error<ShapeError>(
        "gather: batch_dims is {}; batch axes must precede axis {} and be axes of indices: x is {}, indices "
        "is {}",
        batch_dims, at, x.spec(), indices.spec());
  return kGather(x, indices, GatherAttrs{at - x.ndim(), batch_dims, x.ndim()});
}

Tensor scatter_add(const Tensor& x, const Tensor& indices, const Shape& shape, int axis) {
  const ScatterAttrs attrs{shape, checked_axis(kScatterAdd, axis, shape.ndim()) - shape.ndim()};
  if (x.ndim() != shape.ndim() - 1 + indices.ndim())
    throw_error<ShapeError>(
        "scatter_add: x must have the axes of shape with axis {} replaced by those of indices: x is {}, "
        "indices is {}, shape is {}",
        axis, x.spec(), indices.spec(), shape);
  return kScatterAdd(x, indices, attrs);
}

Tensor gather_positions(const Tensor& x, const Tensor& indices, int axes) {
  return kGatherNd(x, indices, GatherNdAttrs{axes});
}
Tensor scatter_positions(const Tensor& updates, const Tensor& indices, const Shape& shape) {
  return kScatterNd(updates, indices, ScatterNdAttrs{shape});
}
Tensor gather_nd(const Tensor& x, const Tensor& indices) { return gather_positions(x, indices, x.ndim()); }

Tensor scatter_nd(const Tensor& indices, const Tensor& updates, const Shape& shape) {
  const int front = indices.ndim() - 1;
  const std::int64_t rest =
      front < 0 ? -1 : shape.ndim() - indices.shape()[front];   // axes after the indexed ones
  if (rest >= 0 && updates.ndim() != front + rest)
    throw_error<ShapeError>(
        "scatter_nd: updates must have {} axes: updates is {}, indices is {}, shape is {}", front + rest,
        updates.spec(), indices.spec(), shape);
  return scatter_positions(updates, indices, shape);
}

std::span<const Op* const> index_ops() { return index_table; }

}   // namespace tapedeck
