// Moments, norms and order statistics over axes. keepdims leaves reduced axes with extent 1. Each throws
// ShapeError for an axis that is out of range or named twice.
#pragma once
#include "tapedeck/ops/reduce.h"

namespace tapedeck {

/// How many elements are not 0 (or false), as i64. No gradient.
TAPEDECK_EXPORT Tensor count_nonzero(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
/// Mean of the squared distances from the mean; divided by n - correction, where 1 makes the estimate from a
/// sample unbiased. f32, f64.
TAPEDECK_EXPORT Tensor variance(const Tensor& x, const Axes& axes = {}, bool keepdims = false,
                                double correction = 0);
/// Standard deviation: the square root of the variance. f32, f64.
TAPEDECK_EXPORT Tensor stddev(const Tensor& x, const Axes& axes = {}, bool keepdims = false,
                              double correction = 0);
/// The norm of all elements over axes, as of one vector: (Σ|x|^order)^(1/order), so that the order 2 of a
/// matrix is its Frobenius norm; for ∞ and -∞ the largest and the smallest |x|, for 0 how many are not 0.
/// Throws ArgumentError for NaN. f32, f64.
TAPEDECK_EXPORT Tensor norm(const Tensor& x, double order = 2, const Axes& axes = {}, bool keepdims = false);
/// The element in the middle, or the mean of the two there, which share the gradient; NaN where there is one.
/// f32, f64. Throws ShapeError over no elements.
TAPEDECK_EXPORT Tensor median(const Tensor& x, const Axes& axes = {}, bool keepdims = false);

}   // namespace tapedeck
