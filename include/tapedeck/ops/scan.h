// Running sums and products along an axis.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

struct ScanOptions {
  bool exclusive = false;   // each entry is that of the elements before it: the first is that of none
  bool reverse = false;     // from the end
};

// Each gives a tensor of x's shape and throws ShapeError for an axis that is out of range.

/// Running sum: y[i] = x[0] + … + x[i]. f32, f64, i32, i64 (i8, u8 and bool: use astype).
TAPEDECK_EXPORT Tensor cumsum(const Tensor& x, int axis = -1, const ScanOptions& options = {});
/// Running product: y[i] = x[0] · … · x[i]. The gradient divides by x, and is 0 for an element that is 0.
/// f32, f64, i32, i64.
TAPEDECK_EXPORT Tensor cumprod(const Tensor& x, int axis = -1, const ScanOptions& options = {});
/// Running log of the sum of exponentials, without overflow: y[i] = log(exp x[0] + … + exp x[i]). Exclusive:
/// the first is the lowest number of the dtype, as TensorFlow has it. f32, f64.
TAPEDECK_EXPORT Tensor cumulative_logsumexp(const Tensor& x, int axis = -1, const ScanOptions& options = {});

}   // namespace tapedeck
