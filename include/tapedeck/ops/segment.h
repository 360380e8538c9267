// Reductions over segments: groups of consecutive rows. The ids of the rows are integers, nonnegative and
// in ascending order: ids that descend or are negative, or shapes that do not match, throw ShapeError.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The sums of segments: y[j, …] = Σ x[i, …] over ids[i] = j. ids are [n] for x [n, …], the result [ids[n -
/// 1] + 1, …], like that of all segment functions; an empty segment gives 0. Not for bool.
TAPEDECK_EXPORT Tensor segment_sum(const Tensor& x, const Tensor& ids);
/// The sums divided by the numbers of rows; 0 for an empty segment. f32, f64, c64, c128.
TAPEDECK_EXPORT Tensor segment_mean(const Tensor& x, const Tensor& ids);
/// The products; 1 for an empty segment. Their derivatives are exact for zero elements, too. Not for bool.
TAPEDECK_EXPORT Tensor segment_prod(const Tensor& x, const Tensor& ids);
/// Minima and maxima; NaN if an element is NaN, 0 for an empty segment. Elements that attain the extremum
/// share the gradient equally. f32, f64 and the integers.
TAPEDECK_EXPORT Tensor segment_min(const Tensor& x, const Tensor& ids);
TAPEDECK_EXPORT Tensor segment_max(const Tensor& x, const Tensor& ids);

/// The sums of segments of selected rows, divided by 1, the number of rows or its square root: y[j, …] = Σ
/// x[indices[k], …] over ids[k] = j, without forming gather(x, indices). indices (integers) and ids are
/// [n]. The result has `count` entries, or by default as many as ids require; an empty segment gives 0. The
/// gradient is IndexedSlices. The sums are not for bool; the others take f32, f64, c64 and c128. Throw
/// ShapeError also if an index or id is out of range.
TAPEDECK_EXPORT Tensor sparse_segment_sum(const Tensor& x, const Tensor& indices, const Tensor& ids,
                                          std::optional<std::int64_t> count = {});
TAPEDECK_EXPORT Tensor sparse_segment_mean(const Tensor& x, const Tensor& indices, const Tensor& ids,
                                           std::optional<std::int64_t> count = {});
TAPEDECK_EXPORT Tensor sparse_segment_sqrt_n(const Tensor& x, const Tensor& indices, const Tensor& ids,
                                             std::optional<std::int64_t> count = {});

}   // namespace tapedeck
