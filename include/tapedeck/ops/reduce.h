// Reductions over axes.
#pragma once
#include "tapedeck/axes.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

// Each throws ShapeError for an axis that is out of range or named twice. keepdims leaves reduced axes with
// extent 1.

/// Sum; 0 over no elements. f32, f64, i32, i64 (i8, u8 and bool: use astype).
TAPEDECK_EXPORT Tensor sum(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
/// Product; 1 over no elements. The gradient is exact where elements are zero. f32, f64, i32, i64 (i8, u8 and
/// bool: use astype).
TAPEDECK_EXPORT Tensor prod(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
/// Arithmetic mean; NaN over no elements. f32, f64.
TAPEDECK_EXPORT Tensor mean(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
/// Logarithm of the sum of exponentials, without overflow; -inf over no elements. f32, f64.
TAPEDECK_EXPORT Tensor logsumexp(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
/// Largest and smallest element, NaN where there is one; equal ones share the gradient. Throw ShapeError over
/// no elements.
TAPEDECK_EXPORT Tensor max(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
TAPEDECK_EXPORT Tensor min(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
/// Index (i64) of the first largest and smallest element along axis; the first NaN comes before both. Throw
/// ShapeError where the axis is empty.
TAPEDECK_EXPORT Tensor argmax(const Tensor& x, int axis = -1, bool keepdims = false);
TAPEDECK_EXPORT Tensor argmin(const Tensor& x, int axis = -1, bool keepdims = false);
/// Whether any element of a bool tensor holds, and whether all do; false and true over no elements. No
/// gradient.
TAPEDECK_EXPORT Tensor any(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
TAPEDECK_EXPORT Tensor all(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
/// How many elements are not 0 (or false), as i64. No gradient.
TAPEDECK_EXPORT Tensor count_nonzero(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
/// Mean of the squared distances from the mean; divided by n - correction, where 1 makes the estimate from a
/// sample unbiased. f32, f64.
TAPEDECK_EXPORT Tensor variance(const Tensor& x, const Axes& axes = {}, bool keepdims = false,
                                double correction = 0);
/// Standard deviation: the square root of the variance. f32, f64.
TAPEDECK_EXPORT Tensor stddev(const Tensor& x, const Axes& axes = {}, bool keepdims = false,
                              double correction = 0);
/// √Σx². The gradient is x / y: NaN where all elements are zero. f32, f64.
TAPEDECK_EXPORT Tensor euclidean_norm(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
/// The norm of all elements over axes, as of one vector: (Σ|x|^order)^(1/order), so that the order 2 of a
/// matrix is its Frobenius norm; for ∞ and -∞ the largest and the smallest |x|, for 0 how many are not 0.
/// Throws ArgumentError for NaN. f32, f64.
TAPEDECK_EXPORT Tensor norm(const Tensor& x, double order = 2, const Axes& axes = {}, bool keepdims = false);
/// The element in the middle, or the mean of the two there, which share the gradient; NaN where there is one.
/// f32, f64. Throws ShapeError over no elements.
TAPEDECK_EXPORT Tensor median(const Tensor& x, const Axes& axes = {}, bool keepdims = false);

}   // namespace tapedeck
