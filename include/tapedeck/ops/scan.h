// Cumulative sums and products along an axis. The result has the shape of x. All throw ShapeError if the axis
// is out of range.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Options of cumulative sums and products.
struct ScanOptions {
  bool exclusive = false;   // entry i excludes element i; the first entry is the empty sum or product
  bool reverse = false;     // accumulate from the end
};

/// Cumulative sum: y[i] = x[0] + … + x[i]. All dtypes but i8, u8 and bool (use astype).
TAPEDECK_EXPORT Tensor cumsum(const Tensor& x, int axis = -1, const ScanOptions& options = {});
/// Cumulative product: y[i] = x[0] · … · x[i]. The gradient is exact for zero elements, too. All dtypes but
/// i8, u8 and bool (use astype).
TAPEDECK_EXPORT Tensor cumprod(const Tensor& x, int axis = -1, const ScanOptions& options = {});
/// Cumulative log-sum-exp, without overflow: y[i] = log(exp x[0] + … + exp x[i]). If exclusive, the first
/// entry is the lowest finite number of the dtype, as in TensorFlow. Floating-point dtypes.
TAPEDECK_EXPORT Tensor cumulative_logsumexp(const Tensor& x, int axis = -1, const ScanOptions& options = {});

}   // namespace tapedeck
