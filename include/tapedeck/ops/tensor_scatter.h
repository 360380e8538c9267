// x with updates [entries…, x.shape[depth], …] at the positions in indices [entries…, depth]. Mixed dtypes
// are not promoted. Indices are i32 or i64 and checked: one out of range throws ShapeError.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

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

}   // namespace tapedeck
