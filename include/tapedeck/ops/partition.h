// Entries of a tensor by a mask or by group numbers, and groups put together again. All dtypes.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The parts of x for which mask (bool), of the shape of x's first axes, holds: [count, …]. Every dtype.
TAPEDECK_EXPORT Tensor boolean_mask(const Tensor& x, const Tensor& mask);

/// The parts of x by number: those where partitions, of the shape of x's first axes, is 0, then 1, … count -
/// 1, each [n, …]. Throws ShapeError for a number out of range.
TAPEDECK_EXPORT std::vector<Tensor> dynamic_partition(const Tensor& x, const Tensor& partitions, int count);
/// The opposite: y[indices[m][i…], …] = x[m][i…, …]. Where a place is named several times the last one is
/// kept, and the others get no gradient. Throws ShapeError where one below the largest is not named.
TAPEDECK_EXPORT Tensor dynamic_stitch(std::span<const Tensor> indices, std::span<const Tensor> x);

}   // namespace tapedeck
