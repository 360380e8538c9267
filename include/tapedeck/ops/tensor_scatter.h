// Ops that return x with updates [entries…, x.shape[depth], …] applied at the positions in indices [entries…,
// depth]. Dtypes must be equal. Indices are integers; one out of range, or shapes that do not match, throw
// ShapeError.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Replaces the slices at these positions. If a position occurs several times, the last update is kept, and
/// the others have a gradient of 0, as does x there. All dtypes.
TAPEDECK_EXPORT Tensor tensor_scatter_update(const Tensor& x, const Tensor& indices, const Tensor& updates);
/// Adds or subtracts the updates, including all updates of a repeated position. All dtypes but bool.
TAPEDECK_EXPORT Tensor tensor_scatter_add(const Tensor& x, const Tensor& indices, const Tensor& updates);
TAPEDECK_EXPORT Tensor tensor_scatter_sub(const Tensor& x, const Tensor& indices, const Tensor& updates);
/// The elementwise maximum or minimum of x and the updates; NaN if either is NaN. Equal elements share the
/// gradient equally. Floating-point and integer dtypes.
TAPEDECK_EXPORT Tensor tensor_scatter_max(const Tensor& x, const Tensor& indices, const Tensor& updates);
TAPEDECK_EXPORT Tensor tensor_scatter_min(const Tensor& x, const Tensor& indices, const Tensor& updates);

}   // namespace tapedeck
