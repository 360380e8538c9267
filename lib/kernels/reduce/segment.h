// Segment reductions: reductions over groups of rows with equal ids; the rows of a segment are consecutive. A
// tensor is [before, extent, after] around an axis (AxisView): `before` slabs of `extent` rows of `after`
// elements.
#pragma once
#include "kernels/layout/gather_scatter.h"
#include "kernels/layout/strided_view.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

enum class SegmentFold { sum, product, max, min };
/// The divisor of the result: 1, the number of rows in the segment, or the square root of that number.
/// Integers are not divided.
enum class Divisor { one, count, root };

/// y[b, j, a] = the reduction of x[b, k, a], or of x[b, rows[k], a], over all k with ids[k] = j. Empty
/// segments are 0, or 1 for products. `view` describes y. ids are sorted and below the extent; rows are in
/// range. Every dtype but bool, and complex numbers only in sums and products; integers wrap around.
void fold_segments(SegmentFold fold, Divisor divisor, const Tensor& x, const Tensor* rows, const Tensor& ids,
                   const AxisView& view, Tensor& y);

/// The value of groups without rows, for reductions by scatter_reduce.
enum class EmptyGroup { zero, one, highest, lowest };
/// Initializes y for scatter_reduce: `empty` in groups without rows, the identity of the fold in all others.
/// highest and lowest are the limits of y's dtype or, if y is the widened copy of a tensor of a storage
/// dtype, of `stored`. The fold is a sum, product, maximum or minimum. `view` describes y; ids are below its
/// extent.
void begin_groups(ScatterReduction fold, EmptyGroup empty, DType stored, const Tensor& ids,
                  const AxisView& view, Tensor& y);

/// y = the number of rows in each group, at least 1, or its square root. y has an element per group, of any
/// floating-point dtype; ids are below the number of groups.
void group_divisors(const Tensor& ids, Divisor divisor, Tensor& y);

/// The share of each element of x in the gradient of its group's extreme: 1 / n if n elements equal the
/// extreme and it is one of them, otherwise 0; also 0 for a negative id. f32 and f64. `view` describes best;
/// ids are below its extent.
void share_of_group_extreme(const Tensor& x, const Tensor& ids, const Tensor& best, const AxisView& view,
                            Tensor& share);

}   // namespace tapedeck::kernels
