// Reductions over groups of rows in any order.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

// ids are i32 or i64.

// Groups in any order: ids have the shape of the first axes of x; the result is [count, …]. Entries with a
// negative id are ignored; an id of `count` or more throws ShapeError. An empty group gives 0 for sums and
// means, 1 for prod, the highest number of the dtype for min and the lowest for max.

TAPEDECK_EXPORT Tensor unsorted_segment_sum(const Tensor& x, const Tensor& ids, std::int64_t count);
/// The mean of the rows. f32, f64.
TAPEDECK_EXPORT Tensor unsorted_segment_mean(const Tensor& x, const Tensor& ids, std::int64_t count);
/// The sum divided by the square root of the number of rows. f32, f64.
TAPEDECK_EXPORT Tensor unsorted_segment_sqrt_n(const Tensor& x, const Tensor& ids, std::int64_t count);
TAPEDECK_EXPORT Tensor unsorted_segment_prod(const Tensor& x, const Tensor& ids, std::int64_t count);
TAPEDECK_EXPORT Tensor unsorted_segment_min(const Tensor& x, const Tensor& ids, std::int64_t count);
TAPEDECK_EXPORT Tensor unsorted_segment_max(const Tensor& x, const Tensor& ids, std::int64_t count);

}   // namespace tapedeck
