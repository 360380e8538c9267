// Reductions over segments: groups of consecutive rows.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

// ids are i32 or i64.

// Segments of consecutive rows: ids [n] of x [n, …] are nonnegative and in ascending order; the result is
// [ids[n - 1] + 1, …]. Throws ShapeError if ids descend or are negative. An empty segment gives 0, or 1 for
// prod.

/// y[j] = Σ x[i] over ids[i] = j. Not for bool.
TAPEDECK_EXPORT Tensor segment_sum(const Tensor& x, const Tensor& ids);
/// The sum divided by the number of rows. f32, f64.
TAPEDECK_EXPORT Tensor segment_mean(const Tensor& x, const Tensor& ids);
/// The product. Its gradient is correct for zero elements, too; its second derivative only if a segment has
/// at most one. Not for bool.
TAPEDECK_EXPORT Tensor segment_prod(const Tensor& x, const Tensor& ids);
/// Minimum and maximum; NaN if an element is NaN. Elements that attain the extremum share the gradient
/// equally. Not for bool.
TAPEDECK_EXPORT Tensor segment_min(const Tensor& x, const Tensor& ids);
TAPEDECK_EXPORT Tensor segment_max(const Tensor& x, const Tensor& ids);

// Segments of selected rows, those of gather(x, indices), which is not formed. ids [n] are in ascending
// order; the result has `count` entries, or by default as many as ids require.

TAPEDECK_EXPORT Tensor sparse_segment_sum(const Tensor& x, const Tensor& indices, const Tensor& ids,
                                          std::optional<std::int64_t> count = {});
TAPEDECK_EXPORT Tensor sparse_segment_mean(const Tensor& x, const Tensor& indices, const Tensor& ids,
                                           std::optional<std::int64_t> count = {});
TAPEDECK_EXPORT Tensor sparse_segment_sqrt_n(const Tensor& x, const Tensor& indices, const Tensor& ids,
                                             std::optional<std::int64_t> count = {});

}   // namespace tapedeck
