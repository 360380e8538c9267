// Moments, norms and order statistics over axes, which are removed unless options.keepdims is set. All
// throw ShapeError if an axis is out of range or given twice; axes 0 and -1 of a tensor without axes are its
// element. All but count_nonzero take floating-point dtypes, and compute f16 and bf16 in f32.
#pragma once
#include "tapedeck/ops/reduce.h"

namespace tapedeck {

/// The number of nonzero (or true) elements, i64; NaN is not zero. No gradient. All dtypes but c64 and c128.
TAPEDECK_EXPORT Tensor count_nonzero(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
/// Options of variance and stddev.
struct VarianceOptions {
  bool keepdims = false;   // as of ReduceOptions
  double correction = 0;   // 1: of a sample, without bias
};
/// The sum of squared deviations from the mean, divided by n - correction, or by 0 where that is negative.
TAPEDECK_EXPORT Tensor variance(const Tensor& x, const Axes& axes = {}, VarianceOptions options = {});
/// The standard deviation: the square root of the variance. The gradient is NaN where that is 0.
TAPEDECK_EXPORT Tensor stddev(const Tensor& x, const Axes& axes = {}, VarianceOptions options = {});
/// The vector norm (Σ|x|^order)^(1/order) of all elements over `axes`, so that order 2 of a matrix is its
/// Frobenius norm. Order ∞ gives the largest |x|, -∞ the smallest, and 0 the number of nonzero elements.
/// The gradient of order 2 is that of euclidean_norm; order 0 has none. Throws ArgumentError if order is NaN,
/// and ShapeError for an empty reduction of order ±∞.
TAPEDECK_EXPORT Tensor norm(const Tensor& x, double order = 2, const Axes& axes = {},
                            ReduceOptions options = {});
/// The median; for an even number of elements the mean of the two middle ones, which share the gradient. NaN
/// if an element is NaN. Throws ShapeError for an empty reduction.
TAPEDECK_EXPORT Tensor median(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});

}   // namespace tapedeck
