// Folds over groups of rows that follow each other.
#pragma once
#include "kernels/layout/strided_view.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

enum class SegmentFold { sum, product, max, min };
/// What the fold is divided by: the number of rows of the group, or the root of it. For f32 and f64.
enum class Divisor { one, count, root };

/// y[b, j, a] = the fold of x[b, k, a] over ids[k] = j, or of x[b, rows[k], a]; for a group without rows 0,
/// and 1 for products. y is seen as `around`, ids never fall and are below its extent, rows are in range.
/// Every dtype but bool; integers wrap around.
void fold_segments(SegmentFold fold, Divisor divisor, const Tensor& x, const Tensor* rows, const Tensor& ids,
                   const AxisView& view, Tensor& y);

}   // namespace tapedeck::kernels
