// Cumulative reductions along an axis. Results do not depend on the number of threads.
#pragma once
#include "kernels/layout/strided_view.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

struct ScanOrder {
  bool exclusive, reverse;   // exclude the element itself; scan from the end
};

/// y[b, i, a] = the sum or product of x[b, j, a] over j up to i. `view` describes x. f32 (accumulated in
/// f64), f64, c64, c128, and i32 and i64, which wrap around.
void cumsum(const Tensor& x, const AxisView& view, ScanOrder order, Tensor& y);
void cumprod(const Tensor& x, const AxisView& view, ScanOrder order, Tensor& y);

// Along the last axis, of extent n:

/// y[i] = log Σ exp x[j] over j up to i or, if reverse, from i on. f32 and f64.
void cumulative_logsumexp(const Tensor& x, std::int64_t n, bool reverse, Tensor& y);
/// y[i] = b[i] + a[i] · y[i - 1], where y[-1] = 0. If b has more rows than a, the rows of a repeat. f32, f64,
/// c64 and c128.
void linear_recurrence(const Tensor& a, const Tensor& b, std::int64_t n, Tensor& y);

}   // namespace tapedeck::kernels
