// Selects entries by a mask, partitions them by number, and merges partitions. All dtypes.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The entries of x for which mask (bool) is true; mask has the shape of the first axes of x. The result is
/// [count, …].
TAPEDECK_EXPORT Tensor boolean_mask(const Tensor& x, const Tensor& mask);

/// Splits x into `count` tensors [n, …]: the entries for which `partitions` is 0, 1, …, count - 1. partitions
/// has the shape of the first axes of x. Throws ShapeError if a partition number is out of range.
TAPEDECK_EXPORT std::vector<Tensor> dynamic_partition(const Tensor& x, const Tensor& partitions, int count);
/// The inverse of dynamic_partition: y[indices[m][i…], …] = x[m][i…, …]. If an index occurs several times,
/// the last entry is kept and the others get no gradient. Throws ShapeError if an index below the largest one
/// is missing.
TAPEDECK_EXPORT Tensor dynamic_stitch(std::span<const Tensor> indices, std::span<const Tensor> x);

}   // namespace tapedeck
