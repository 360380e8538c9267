// Checks that indices are within an extent, and converts positions along several axes to flat indices.
#pragma once
#include <optional>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// An index that is out of range, and its flat position in the tensor of indices.
struct Outside {
  std::int64_t index, position;
};
/// The first index that is `extent` or more, or negative, unless negative indices have a meaning.
std::optional<Outside> first_outside(const Tensor& indices, std::int64_t extent,
                                     bool negative_means_something = false);

/// Converts each row of indices, [n, extents.ndim()], which is a position in a tensor of these extents, to a
/// row-major index in flat, i64[n]. Returns the first row with a coordinate that is out of range, if any;
/// flat is then incomplete.
std::optional<std::int64_t> flatten_positions(const Tensor& indices, const Shape& extents, Tensor& flat);

}   // namespace tapedeck::kernels
