// Sums, products and extremes over groups of rows in any order.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

// ids are i32 or i64.

// Groups in any order: ids have the shape of x's first axes; y is [count, …]. What has a negative id is left
// out; an id of count or more throws ShapeError. A group without rows gives 0; for prod 1; for min and max
// the dtype's highest and lowest number.

TAPEDECK_EXPORT Tensor unsorted_segment_sum(const Tensor& x, const Tensor& ids, std::int64_t count);
TAPEDECK_EXPORT Tensor unsorted_segment_mean(const Tensor& x, const Tensor& ids, std::int64_t count);
/// The sum divided by the square root of the number of rows. f32, f64.
TAPEDECK_EXPORT Tensor unsorted_segment_sqrt_n(const Tensor& x, const Tensor& ids, std::int64_t count);
TAPEDECK_EXPORT Tensor unsorted_segment_prod(const Tensor& x, const Tensor& ids, std::int64_t count);
TAPEDECK_EXPORT Tensor unsorted_segment_min(const Tensor& x, const Tensor& ids, std::int64_t count);
TAPEDECK_EXPORT Tensor unsorted_segment_max(const Tensor& x, const Tensor& ids, std::int64_t count);

}   // namespace tapedeck
