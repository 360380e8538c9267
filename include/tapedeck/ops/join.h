// Tensors joined, and cut into parts. All dtypes.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Tensors joined along an axis; their other extents are equal, and mixed dtypes are promoted.
TAPEDECK_EXPORT Tensor concat(std::span<const Tensor> x, int axis);
inline Tensor concat(std::initializer_list<Tensor> x, int axis) {
  return concat(std::span<const Tensor>(x.begin(), x.size()), axis);
}
/// Tensors of one shape joined along an axis of their own, which is put in at position axis of the result.
/// Mixed dtypes are promoted.
TAPEDECK_EXPORT Tensor stack(std::span<const Tensor> x, int axis = 0);
inline Tensor stack(std::initializer_list<Tensor> x, int axis = 0) {
  return stack(std::span<const Tensor>(x.begin(), x.size()), axis);
}

// One split is faster to differentiate than a slice for each part: its gradient is put together once.

/// x cut into parts of equal extent along an axis, without a copy along the first. Throws ShapeError where
/// parts does not divide the axis.
TAPEDECK_EXPORT std::vector<Tensor> split(const Tensor& x, int parts, int axis = 0);
/// x cut into parts of these extents, which add up to the axis. One of them may be -1: what is left.
TAPEDECK_EXPORT std::vector<Tensor> split(const Tensor& x, std::span<const std::int64_t> sizes, int axis = 0);
inline std::vector<Tensor> split(const Tensor& x, std::initializer_list<std::int64_t> sizes, int axis = 0) {
  return split(x, std::span<const std::int64_t>(sizes.begin(), sizes.size()), axis);
}
/// The entries along an axis, without that axis; the opposite of stack.
TAPEDECK_EXPORT std::vector<Tensor> unstack(const Tensor& x, int axis = 0);

}   // namespace tapedeck
