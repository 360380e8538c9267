// Shapes and arrangement: the same elements elsewhere. All dtypes.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The elements in row-major order under another shape, without a copy. One dimension may be -1: what is left.
TAPEDECK_EXPORT Tensor reshape(const Tensor& x, const Shape& shape);
/// An axis of extent 1 put in at position axis of the result. Without a copy.
TAPEDECK_EXPORT Tensor expand_dims(const Tensor& x, int axis);
/// Axes of extent 1 removed: those named, or all. Without a copy.
TAPEDECK_EXPORT Tensor squeeze(const Tensor& x, const std::vector<int>& axes = {});
/// Axes in another order: axis i of the result is axis perm[i] of x. Without perm, reversed.
TAPEDECK_EXPORT Tensor transpose(const Tensor& x, const std::vector<int>& perm = {});
/// x repeated to a shape that it broadcasts to.
TAPEDECK_EXPORT Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// Tensors joined along an axis; their other extents are equal, and mixed dtypes are promoted.
TAPEDECK_EXPORT Tensor concat(std::span<const Tensor> x, int axis);
inline Tensor concat(std::initializer_list<Tensor> x, int axis) { return concat(std::span<const Tensor>(x.begin(), x.size()), axis); }
/// The part of x that starts at begin and has extents size; a size of -1 goes to the end. Without a copy where the part
/// is contiguous, as rows are. Throws ShapeError where it reaches outside.
TAPEDECK_EXPORT Tensor slice(const Tensor& x, const Shape& begin, const Shape& size);
/// x with zeros around it: before[i] and after[i] of them along axis i.
TAPEDECK_EXPORT Tensor pad(const Tensor& x, const Shape& before, const Shape& after);
/// on at position indices[…] along a last axis of extent depth, 0 elsewhere; all 0 for an index outside. indices are i32 or i64.
TAPEDECK_EXPORT Tensor one_hot(const Tensor& indices, std::int64_t depth, DType dtype = DType::f32);
/// The same values as a new tensor.
TAPEDECK_EXPORT Tensor identity(const Tensor& x);
/// The same values as a new tensor that no tape and no accumulator follows.
TAPEDECK_EXPORT Tensor stop_gradient(const Tensor& x);
/// Zeros and ones of x's shape and dtype.
TAPEDECK_EXPORT Tensor zeros_like(const Tensor& x);
TAPEDECK_EXPORT Tensor ones_like(const Tensor& x);

}  // namespace tapedeck
