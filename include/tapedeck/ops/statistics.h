// Moments, norms and order statistics over axes, which are removed unless options.keepdims is set. All throw
// ShapeError if an axis is out of range or given twice; a tensor of rank 0 accepts the axes 0 and -1. All but
// count_nonzero accept only floating-point dtypes, and compute f16 and bf16 in f32.
#pragma once
#include "tapedeck/ops/reduce.h"

namespace tapedeck {

/// The number of nonzero (or true) elements, i64; NaN is not zero. No gradient. All dtypes but c64 and c128.
TAPEDECK_EXPORT Tensor count_nonzero(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
/// Options of variance and stddev.
struct VarianceOptions {
  bool keepdims = false;   // as in ReduceOptions
  double correction = 0;   // 1: unbiased estimate from a sample
};
/// The sum of squared deviations from the mean, divided by max(n - correction, 0).
TAPEDECK_EXPORT Tensor variance(const Tensor& x, const Axes& axes = {}, VarianceOptions options = {});
/// The standard deviation: the square root of the variance. The gradient is NaN where it is 0.
TAPEDECK_EXPORT Tensor stddev(const Tensor& x, const Axes& axes = {}, VarianceOptions options = {});
/// The vector norm (Σ|x|^order)^(1/order) of all elements over `axes`, so that order 2 of a matrix is its
/// Frobenius norm. Order ∞ is the largest |x|, -∞ the smallest, and 0 the number of nonzero elements. Order 2
/// has the gradient of euclidean_norm, order 0 none. Throws ArgumentError if order is NaN, and ShapeError for
/// an empty reduction of order ±∞.
TAPEDECK_EXPORT Tensor norm(const Tensor& x, double order = 2, const Axes& axes = {},
                            ReduceOptions options = {});
/// The median; for an even number of elements the mean of the two middle ones, which share the gradient. NaN
/// if an element is NaN. Throws ShapeError for an empty reduction.
TAPEDECK_EXPORT Tensor median(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});

}   // namespace tapedeck
