// Gather and scatter by index tensors. Indices are integers; one out of range throws ShapeError.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Slices of x along `axis`: the result has x's shape with that axis replaced by the shape of indices. Along
/// axis 0 the gradient is IndexedSlices.
TAPEDECK_EXPORT Tensor gather(const Tensor& x, const Tensor& indices, int axis = 0);
/// gather with batch axes: y[b…, …, k…, …] = x[b…, …, indices[b…, k…], …]. The first `batch_dims` axes of x
/// and indices must be equal and precede `axis`. The gradient is dense.
TAPEDECK_EXPORT Tensor gather(const Tensor& x, const Tensor& indices, int axis, int batch_dims);
/// The adjoint of gather: zeros of `shape`, to which the slices of x are added along `axis` at `indices`. All
/// dtypes but bool. Throws ShapeError if shapes do not match.
TAPEDECK_EXPORT Tensor scatter_add(const Tensor& x, const Tensor& indices, const Shape& shape, int axis = 0);
/// Slices of x at multi-dimensional positions: the last axis of indices [entries…, depth] indexes the first
/// `depth` axes of x; the result is [entries…, x.shape[depth], …].
TAPEDECK_EXPORT Tensor gather_nd(const Tensor& x, const Tensor& indices);
/// The adjoint of gather_nd: zeros of `shape`, to which updates [entries…, shape[depth], …] are added at the
/// positions in indices [entries…, depth]. Updates at equal positions are summed. All dtypes but bool.
TAPEDECK_EXPORT Tensor scatter_nd(const Tensor& indices, const Tensor& updates, const Shape& shape);

}   // namespace tapedeck
