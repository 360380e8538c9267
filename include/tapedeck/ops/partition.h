// Selects entries by a mask, partitions them by number, and merges partitions. All dtypes.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The entries of x for which mask (bool) is true, in row-major order; mask has the shape of the first axes
/// of x. The result is [count, …]. The gradient is 0 for the other entries. Throws ShapeError if the shapes
/// do not match or mask has rank 0, DTypeError unless mask is bool.
TAPEDECK_EXPORT Tensor boolean_mask(const Tensor& x, const Tensor& mask);

/// Splits x into `count` tensors [n, …]: the entries for which `partitions` (integers) is 0, 1, …, count -
/// 1, in order. partitions has the shape of the first axes of x. Throws ShapeError if a partition number is
/// out of range, and ArgumentError if count is below 1.
TAPEDECK_EXPORT std::vector<Tensor> dynamic_partition(const Tensor& x, const Tensor& partitions, int count);
/// The inverse of dynamic_partition: y[indices[m][i…], …] = x[m][i…, …], with one tensor of integer indices
/// for each tensor of x. If an index occurs several times, the last entry is kept and the others have a
/// gradient of 0. Throws ShapeError if an index is negative or one below the largest is missing, DTypeError
/// if dtypes differ, and ArgumentError if the lists are empty or differ in length.
TAPEDECK_EXPORT Tensor dynamic_stitch(std::span<const Tensor> indices, std::span<const Tensor> x);

}   // namespace tapedeck
