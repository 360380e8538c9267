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
/// The adjoint of gather: zeros of shape, with the slices of x added along axis at indices.
TAPEDECK_EXPORT Tensor scatter_add(const Tensor& x, const Tensor& indices, const Shape& shape, int axis = 0);
/// Parts of x at positions: the last axis of indices [entries…, depth] holds a position along the first depth
/// axes of x, and the result is [entries…, x.shape[depth], …].
TAPEDECK_EXPORT Tensor gather_nd(const Tensor& x, const Tensor& indices);
/// The adjoint of gather_nd: zeros of shape, with updates [entries…, shape[depth], …] added at the positions
/// in indices [entries…, depth]. Where a position comes several times the updates are summed. Not for bool.
TAPEDECK_EXPORT Tensor scatter_nd(const Tensor& indices, const Tensor& updates, const Shape& shape);

}   // namespace tapedeck
