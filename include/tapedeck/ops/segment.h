// Reductions over segments: groups of consecutive rows. The ids of the rows are integers, nonnegative and
// in ascending order: ids that descend or are negative, or shapes that do not match, throw ShapeError.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The sums of segments: y[j, …] = Σ x[i, …] over ids[i] = j. For ids [n] and x [n, …], the result of all
/// segment functions is [ids[n - 1] + 1, …]. The sum of an empty segment is 0. All dtypes but bool.
TAPEDECK_EXPORT Tensor segment_sum(const Tensor& x, const Tensor& ids);
/// The sums divided by the number of rows; 0 for an empty segment. Floating-point and complex dtypes.
TAPEDECK_EXPORT Tensor segment_mean(const Tensor& x, const Tensor& ids);
/// The products; 1 for an empty segment. Their derivatives are exact for zero elements, too. All dtypes but
/// bool.
TAPEDECK_EXPORT Tensor segment_prod(const Tensor& x, const Tensor& ids);
/// Minima and maxima; NaN if an element is NaN, 0 for an empty segment. Elements that attain the extremum
/// share the gradient equally. Floating-point and integer dtypes.
TAPEDECK_EXPORT Tensor segment_min(const Tensor& x, const Tensor& ids);
TAPEDECK_EXPORT Tensor segment_max(const Tensor& x, const Tensor& ids);

/// The sums of segments of selected rows, divided by 1, the number of rows or its square root: y[j, …] = Σ
/// x[indices[k], …] over ids[k] = j, without forming gather(x, indices). indices (integers) and ids are [n].
/// The result has `count` entries, or by default as many as ids require, which are 0 for an empty segment.
/// The gradient is IndexedSlices. Sums: all dtypes but bool; the others: floating-point and complex dtypes.
/// Also throw ShapeError if an index or id is out of range.
TAPEDECK_EXPORT Tensor sparse_segment_sum(const Tensor& x, const Tensor& indices, const Tensor& ids,
                                          std::optional<std::int64_t> count = {});
TAPEDECK_EXPORT Tensor sparse_segment_mean(const Tensor& x, const Tensor& indices, const Tensor& ids,
                                           std::optional<std::int64_t> count = {});
TAPEDECK_EXPORT Tensor sparse_segment_sqrt_n(const Tensor& x, const Tensor& indices, const Tensor& ids,
                                             std::optional<std::int64_t> count = {});

}   // namespace tapedeck
