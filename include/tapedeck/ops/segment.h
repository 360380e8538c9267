// Sums, products and extremes over groups of rows that follow each other.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

// ids are i32 or i64.

// Groups of rows that follow each other: ids [n] of x [n, …] start at 0 or more and never fall; y is [ids[n -
// 1] + 1, …]. Throws ShapeError where they fall or are negative. A group without rows gives 0, and 1 for
// prod.

/// y[j] = Σ x[i] over ids[i] = j. Not for bool.
TAPEDECK_EXPORT Tensor segment_sum(const Tensor& x, const Tensor& ids);
/// The sum divided by the number of rows. f32, f64.
TAPEDECK_EXPORT Tensor segment_mean(const Tensor& x, const Tensor& ids);
/// The product; its gradient is right where elements are zero, its second derivative where no more than one
/// of a group is. Not for bool.
TAPEDECK_EXPORT Tensor segment_prod(const Tensor& x, const Tensor& ids);
/// The smallest and largest element, NaN where there is one; equal ones share the gradient. Not for bool.
TAPEDECK_EXPORT Tensor segment_min(const Tensor& x, const Tensor& ids);
TAPEDECK_EXPORT Tensor segment_max(const Tensor& x, const Tensor& ids);

// Groups of chosen rows, without a sum over all: those of gather(x, indices). ids [n] never fall; y has count
// entries, or as many as ids name.

TAPEDECK_EXPORT Tensor sparse_segment_sum(const Tensor& x, const Tensor& indices, const Tensor& ids,
                                          std::optional<std::int64_t> count = {});
TAPEDECK_EXPORT Tensor sparse_segment_mean(const Tensor& x, const Tensor& indices, const Tensor& ids,
                                           std::optional<std::int64_t> count = {});
TAPEDECK_EXPORT Tensor sparse_segment_sqrt_n(const Tensor& x, const Tensor& indices, const Tensor& ids,
                                             std::optional<std::int64_t> count = {});

}   // namespace tapedeck
