// Ops that change the shape or order of elements, or repeat them. All dtypes. Negative axes count from the
// end; an axis out of range, or named twice, throws ShapeError.
#pragma once
#include "tapedeck/ints.h"
#include "tapedeck/ops/reduce.h"

namespace tapedeck {

/// The elements of x, in row-major order, with another shape; without a copy. One extent may be -1 and is
/// inferred. Throws ShapeError if the element counts differ.
TAPEDECK_EXPORT Tensor reshape(const Tensor& x, const Shape& shape);
/// Inserts an axis of extent 1 at position `axis` of the result, without a copy.
TAPEDECK_EXPORT Tensor expand_dims(const Tensor& x, int axis);
/// Removes axes of extent 1: the given ones, or all of them; without a copy. Throws ShapeError if a given
/// axis has another extent.
TAPEDECK_EXPORT Tensor squeeze(const Tensor& x, const Axes& axes = {});
/// Permutes the axes: axis i of the result is axis perm[i] of x. Without `perm`, reverses their order.
/// Throws ShapeError unless perm names every axis once.
TAPEDECK_EXPORT Tensor transpose(const Tensor& x, const Axes& perm = {});
/// Reverses the order of elements along the given axes, or along all.
TAPEDECK_EXPORT Tensor reverse(const Tensor& x, const Axes& axes = {});
/// Broadcasts x to `shape` by repeating its elements; the gradient is summed over them. Throws ShapeError if
/// x does not broadcast to `shape`.
TAPEDECK_EXPORT Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// Repeats x reps[i] times along axis i. As in NumPy, the shorter of x.shape and reps is padded with leading
/// ones. The gradient is the sum over the copies. Throws ShapeError if a number of repetitions is negative.
TAPEDECK_EXPORT Tensor tile(const Tensor& x, Ints reps);
/// A tensor with a new last axis of extent `depth` that is 1 at position indices[…] and 0 elsewhere; all 0 if
/// the index is out of range. indices are integers. No gradient. Throws ShapeError if depth is negative,
/// DTypeError for other indices.
TAPEDECK_EXPORT Tensor one_hot(const Tensor& indices, std::int64_t depth, DType dtype = default_dtype());
/// x as a new tensor with its own id, which shares the memory of x. Gradients pass unchanged.
TAPEDECK_EXPORT Tensor identity(const Tensor& x);
/// x as a new tensor that tapes and accumulators do not track: a constant to them.
TAPEDECK_EXPORT Tensor stop_gradient(const Tensor& x);
/// Zeros or ones of x's shape and dtype. No gradient.
TAPEDECK_EXPORT Tensor zeros_like(const Tensor& x);
TAPEDECK_EXPORT Tensor ones_like(const Tensor& x);
/// identity for several tensors, which may differ in shape and dtype.
TAPEDECK_EXPORT std::vector<Tensor> identity_n(std::span<const Tensor> x);
/// A tensor of the given shape in which every element is `value`, a tensor of rank 0, whose gradient is
/// the sum over all elements. Throws ShapeError for another rank.
TAPEDECK_EXPORT Tensor fill(const Shape& shape, const Tensor& value);

/// The order of meshgrid's first two axes. xy: y, then x, as in images; ij: as in the arguments.
enum class Indexing : std::uint8_t { xy, ij };
/// Coordinate grids from vectors (tensors of rank 1): result i has x[i][k] at index k along axis i.
/// Indexing::xy swaps the first two axes, as in NumPy. Throws ShapeError for other ranks or more than eight
/// tensors.
TAPEDECK_EXPORT std::vector<Tensor> meshgrid(std::span<const Tensor> x, Indexing indexing = Indexing::xy);
inline std::vector<Tensor> meshgrid(std::initializer_list<Tensor> x, Indexing indexing = Indexing::xy) {
  return meshgrid(std::span<const Tensor>(x.begin(), x.size()), indexing);
}

}   // namespace tapedeck
