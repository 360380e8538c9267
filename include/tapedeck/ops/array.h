// Shapes and arrangement: the same elements under another shape, in another order, or repeated. All dtypes.
#pragma once
#include "tapedeck/ops/reduce.h"

namespace tapedeck {

/// The elements in row-major order under another shape, without a copy. One dimension may be -1: what is
/// left.
TAPEDECK_EXPORT Tensor reshape(const Tensor& x, const Shape& shape);
/// An axis of extent 1 put in at position axis of the result. Without a copy.
TAPEDECK_EXPORT Tensor expand_dims(const Tensor& x, int axis);
/// Axes of extent 1 removed: those named, or all of that extent. Without a copy.
TAPEDECK_EXPORT Tensor squeeze(const Tensor& x, const Axes& axes = {});
/// Axes in another order: axis i of the result is axis perm[i] of x. Without perm, reversed.
TAPEDECK_EXPORT Tensor transpose(const Tensor& x, const std::vector<int>& perm = {});
/// The elements in the opposite order along the axes named, or along all.
TAPEDECK_EXPORT Tensor reverse(const Tensor& x, const Axes& axes = {});
/// x repeated to a shape that it broadcasts to.
TAPEDECK_EXPORT Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// x repeated reps[i] times along axis i. As in NumPy, the shorter of x's shape and reps gets ones in front.
TAPEDECK_EXPORT Tensor tile(const Tensor& x, const Shape& reps);
/// on at position indices[…] along a last axis of extent depth, 0 elsewhere; all 0 for an index outside.
/// indices are i32 or i64.
TAPEDECK_EXPORT Tensor one_hot(const Tensor& indices, std::int64_t depth, DType dtype = DType::f32);
/// The same values as a new tensor.
TAPEDECK_EXPORT Tensor identity(const Tensor& x);
/// The same values as a new tensor that no tape and no accumulator follows.
TAPEDECK_EXPORT Tensor stop_gradient(const Tensor& x);
/// Zeros and ones of x's shape and dtype.
TAPEDECK_EXPORT Tensor zeros_like(const Tensor& x);
TAPEDECK_EXPORT Tensor ones_like(const Tensor& x);
/// The same for several at once.
TAPEDECK_EXPORT std::vector<Tensor> identity_n(std::span<const Tensor> x);
/// value, of rank 0, in every place of a shape.
TAPEDECK_EXPORT Tensor fill(const Shape& shape, const Tensor& value);

enum class Indexing : std::uint8_t { xy, ij };
/// Tensors of rank 1 as coordinates of a grid: each varies along one axis of the result; xy exchanges the
/// first two, as NumPy.
TAPEDECK_EXPORT std::vector<Tensor> meshgrid(std::span<const Tensor> x, Indexing indexing = Indexing::xy);
inline std::vector<Tensor> meshgrid(std::initializer_list<Tensor> x, Indexing indexing = Indexing::xy) {
  return meshgrid(std::span<const Tensor>(x.begin(), x.size()), indexing);
}

}   // namespace tapedeck
