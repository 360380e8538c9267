// Elements chosen by an index tensor. Indices are i32 or i64 and checked: one out of range throws ShapeError.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Slices of x along axis: the result's shape is x's with that axis replaced by the shape of indices. Along
/// axis 0 the gradient is IndexedSlices.
TAPEDECK_EXPORT Tensor gather(const Tensor& x, const Tensor& indices, int axis = 0);
/// The same where the first batch_dims axes of x and indices go together: y[b…, …, k…, …] = x[b…, …,
/// indices[b…, k…], …]. These axes are equal and lie before axis. The gradient is dense.
TAPEDECK_EXPORT Tensor gather(const Tensor& x, const Tensor& indices, int axis, int batch_dims);
/// Single elements along axis: y[…, k, …] = x[…, indices[…, k, …], …]. indices has x's shape but for that
/// axis.
TAPEDECK_EXPORT Tensor take_along_axis(const Tensor& x, const Tensor& indices, int axis = -1);
/// The adjoint of gather: zeros of shape, with the slices of x added along axis at indices.
TAPEDECK_EXPORT Tensor scatter_add(const Tensor& x, const Tensor& indices, const Shape& shape, int axis = 0);
/// Parts of x at positions: the last axis of indices [entries…, depth] holds a position along the first depth
/// axes of x, and the result is [entries…, x.shape[depth], …].
TAPEDECK_EXPORT Tensor gather_nd(const Tensor& x, const Tensor& indices);
/// The adjoint of gather_nd: zeros of shape, with updates [entries…, shape[depth], …] added at the positions
/// in indices [entries…, depth]. Where a position comes several times the updates are summed. Not for bool.
TAPEDECK_EXPORT Tensor scatter_nd(const Tensor& indices, const Tensor& updates, const Shape& shape);

// A tensor with updates [entries…, x.shape[depth], …] at the positions in indices [entries…, depth]. Mixed
// dtypes are not promoted.

/// x with updates in their places. Where a position comes several times the last update is kept, and all get
/// its gradient.
TAPEDECK_EXPORT Tensor tensor_scatter_update(const Tensor& x, const Tensor& indices, const Tensor& updates);
/// x with updates added, subtracted. Not for bool.
TAPEDECK_EXPORT Tensor tensor_scatter_add(const Tensor& x, const Tensor& indices, const Tensor& updates);
TAPEDECK_EXPORT Tensor tensor_scatter_sub(const Tensor& x, const Tensor& indices, const Tensor& updates);
/// The larger and the smaller of x and the updates, NaN where there is one; equal ones share the gradient.
/// Not for bool.
TAPEDECK_EXPORT Tensor tensor_scatter_max(const Tensor& x, const Tensor& indices, const Tensor& updates);
TAPEDECK_EXPORT Tensor tensor_scatter_min(const Tensor& x, const Tensor& indices, const Tensor& updates);

/// The parts of x by number: those where partitions, of the shape of x's first axes, is 0, then 1, … count -
/// 1, each [n, …]. Throws ShapeError for a number out of range.
TAPEDECK_EXPORT std::vector<Tensor> dynamic_partition(const Tensor& x, const Tensor& partitions, int count);
/// The opposite: y[indices[m][i…], …] = x[m][i…, …]. Where a place is named several times the last one is
/// kept, and the others get no gradient. Throws ShapeError where one below the largest is not named.
TAPEDECK_EXPORT Tensor dynamic_stitch(std::span<const Tensor> indices, std::span<const Tensor> x);

}   // namespace tapedeck
