// Change the shape or order of elements, or repeat them. All dtypes.
#pragma once
#include "tapedeck/ops/reduce.h"

namespace tapedeck {

/// The same elements in row-major order with another shape, without a copy. One dimension may be -1 and is
/// inferred.
TAPEDECK_EXPORT Tensor reshape(const Tensor& x, const Shape& shape);
/// Inserts an axis of extent 1 at position `axis` of the result. Without a copy.
TAPEDECK_EXPORT Tensor expand_dims(const Tensor& x, int axis);
/// Removes axes of extent 1: the given ones, or all of them. Without a copy.
TAPEDECK_EXPORT Tensor squeeze(const Tensor& x, const Axes& axes = {});
/// Permutes the axes: axis i of the result is axis perm[i] of x. Without `perm`, reverses their order.
TAPEDECK_EXPORT Tensor transpose(const Tensor& x, const std::vector<int>& perm = {});
/// Reverses the order of elements along the given axes, or along all.
TAPEDECK_EXPORT Tensor reverse(const Tensor& x, const Axes& axes = {});
/// Broadcasts x to `shape` by repeating its elements.
TAPEDECK_EXPORT Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// Repeats x reps[i] times along axis i. As in NumPy, the shorter of x.shape and reps is padded with leading
/// ones.
TAPEDECK_EXPORT Tensor tile(const Tensor& x, const Shape& reps);
/// A tensor with a new last axis of extent `depth` that is `on` at position indices[…] and 0 elsewhere; all 0
/// if the index is out of range. indices are i32 or i64.
TAPEDECK_EXPORT Tensor one_hot(const Tensor& indices, std::int64_t depth, DType dtype = DType::f32);
/// The same values as a new tensor.
TAPEDECK_EXPORT Tensor identity(const Tensor& x);
/// The same values as a new tensor that tapes and accumulators do not track.
TAPEDECK_EXPORT Tensor stop_gradient(const Tensor& x);
/// Zeros or ones of x's shape and dtype.
TAPEDECK_EXPORT Tensor zeros_like(const Tensor& x);
TAPEDECK_EXPORT Tensor ones_like(const Tensor& x);
/// identity for several tensors.
TAPEDECK_EXPORT std::vector<Tensor> identity_n(std::span<const Tensor> x);
/// A tensor of the given shape in which every element is `value`, a tensor of rank 0.
TAPEDECK_EXPORT Tensor fill(const Shape& shape, const Tensor& value);

enum class Indexing : std::uint8_t { xy, ij };
/// Coordinate grids from vectors (tensors of rank 1): each result varies along one axis. Indexing::xy swaps
/// the first two axes, as in NumPy.
TAPEDECK_EXPORT std::vector<Tensor> meshgrid(std::span<const Tensor> x, Indexing indexing = Indexing::xy);
inline std::vector<Tensor> meshgrid(std::initializer_list<Tensor> x, Indexing indexing = Indexing::xy) {
  return meshgrid(std::span<const Tensor>(x.begin(), x.size()), indexing);
}

}   // namespace tapedeck
