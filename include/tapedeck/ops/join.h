// Joining and splitting tensors. All dtypes.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Concatenates tensors along `axis`. Mixed dtypes are promoted. Throws ShapeError if the axis is out of
/// range or ranks or other extents differ, and ArgumentError for an empty list.
TAPEDECK_EXPORT Tensor concat(std::span<const Tensor> x, int axis);
inline Tensor concat(std::initializer_list<Tensor> x, int axis) {
  return concat(std::span<const Tensor>(x.begin(), x.size()), axis);
}
/// Stacks tensors of one shape along a new axis at position `axis` of the result. Mixed dtypes are promoted.
/// Throws as concat does.
TAPEDECK_EXPORT Tensor stack(std::span<const Tensor> x, int axis = 0);
inline Tensor stack(std::initializer_list<Tensor> x, int axis = 0) {
  return stack(std::span<const Tensor>(x.begin(), x.size()), axis);
}

/// Splits x into `parts` parts of equal extent along `axis`; without a copy along axis 0. One split is faster
/// to differentiate than several slices, since its gradient is assembled once. Throws ShapeError unless
/// `parts` divides the extent, and ArgumentError if it is below 1.
TAPEDECK_EXPORT std::vector<Tensor> split(const Tensor& x, int parts, int axis = 0);
/// Splits x into parts of the given sizes, which must add up to the extent. One of them may be -1 and is
/// inferred. Throws ShapeError otherwise, and ArgumentError for an empty list.
TAPEDECK_EXPORT std::vector<Tensor> split(const Tensor& x, std::span<const std::int64_t> sizes, int axis = 0);
inline std::vector<Tensor> split(const Tensor& x, std::initializer_list<std::int64_t> sizes, int axis = 0) {
  return split(x, std::span<const std::int64_t>(sizes.begin(), sizes.size()), axis);
}
/// The entries along `axis`, without that axis; the inverse of stack. An empty list if the axis is empty.
TAPEDECK_EXPORT std::vector<Tensor> unstack(const Tensor& x, int axis = 0);

}   // namespace tapedeck
