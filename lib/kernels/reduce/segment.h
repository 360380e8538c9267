// Segment reductions: reductions over groups of consecutive rows.
#pragma once
#include "kernels/layout/gather_scatter.h"
#include "kernels/layout/strided_view.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

enum class SegmentFold { sum, product, max, min };
/// What the result is divided by: nothing, the segment's number of rows, or its square root. For f32 and f64.
enum class Divisor { one, count, root };

/// y[b, j, a] = the reduction of x[b, k, a], or of x[b, rows[k], a], over all k with ids[k] = j. Empty
/// segments give 0, and 1 for products. `view` describes y. ids are sorted and below the extent; rows are in
/// range. Every dtype but bool; integers wrap around.
void fold_segments(SegmentFold fold, Divisor divisor, const Tensor& x, const Tensor* rows, const Tensor& ids,
                   const AxisView& view, Tensor& y);

/// The value of groups without rows, in scatter_reduce by group.
enum class EmptyGroup { zero, one, highest, lowest };
/// Fills y with what that begins with: `empty` in groups that no id names, and else the identity of the fold,
/// which is a sum, product, maximum or minimum. `view` describes y; ids are below its extent.
void begin_groups(ScatterReduction fold, EmptyGroup empty, const Tensor& ids, const AxisView& view,
                  Tensor& y);

/// How many rows each group has, at least 1, or the square root of that. y has an element for each group, of
/// any floating-point dtype; ids are below their number.
void group_divisors(const Tensor& ids, Divisor divisor, Tensor& y);

/// What each element of x gets of the gradient of its group's extreme: 1 / n for n elements that equal it,
/// else 0; 0 for a negative id. f32 and f64. `view` describes best; ids are below its extent.
void share_of_group_extreme(const Tensor& x, const Tensor& ids, const Tensor& best, const AxisView& view,
                            Tensor& share);

}   // namespace tapedeck::kernels
