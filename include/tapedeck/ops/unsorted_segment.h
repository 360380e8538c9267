// Reductions over groups of rows in any order: the result is [count, …], one row for each group. ids are
// integers and have the shape of the first axes of x. Entries with a negative id are ignored, and their
// gradient is 0. An id of `count` or more, a negative count or shapes that do not match throw ShapeError.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The sums of the groups: y[j, …] = Σ x[i…, …] over ids[i…] = j; 0 for an empty group. All dtypes but bool.
TAPEDECK_EXPORT Tensor unsorted_segment_sum(const Tensor& x, const Tensor& ids, std::int64_t count);
/// The sums divided by the number of rows; 0 for an empty group. Floating-point dtypes.
TAPEDECK_EXPORT Tensor unsorted_segment_mean(const Tensor& x, const Tensor& ids, std::int64_t count);
/// The sums divided by the square root of the number of rows; 0 for an empty group. Floating-point dtypes.
TAPEDECK_EXPORT Tensor unsorted_segment_sqrt_n(const Tensor& x, const Tensor& ids, std::int64_t count);
/// The products; 1 for an empty group. Their derivatives are exact for zero elements, too. All dtypes but
/// bool.
TAPEDECK_EXPORT Tensor unsorted_segment_prod(const Tensor& x, const Tensor& ids, std::int64_t count);
/// Minima and maxima; NaN if an element is NaN. The minimum of an empty group is the highest number of the
/// dtype, the maximum the lowest. Elements that attain the extremum share the gradient equally.
/// Floating-point and integer dtypes.
TAPEDECK_EXPORT Tensor unsorted_segment_min(const Tensor& x, const Tensor& ids, std::int64_t count);
TAPEDECK_EXPORT Tensor unsorted_segment_max(const Tensor& x, const Tensor& ids, std::int64_t count);

}   // namespace tapedeck
