// Elements chosen by an index tensor. Indices are i32 or i64 and checked: one out of range throws ShapeError.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Slices of x along axis: the result's shape is x's with that axis replaced by the shape of indices. Along axis 0 the
/// gradient is IndexedSlices.
TAPEDECK_EXPORT Tensor gather(const Tensor& x, const Tensor& indices, int axis = 0);
/// The adjoint of gather: zeros of shape, with the slices of x added along axis at indices.
TAPEDECK_EXPORT Tensor scatter_add(const Tensor& x, const Tensor& indices, const Shape& shape, int axis = 0);

}  // namespace tapedeck
