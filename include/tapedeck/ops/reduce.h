// Reductions over axes, which are removed unless options.keepdims is set. All throw ShapeError if an axis is
// out of range or given twice; a tensor of rank 0 accepts the axes 0 and -1.
#pragma once
#include "tapedeck/axes.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Sum; 0 for an empty reduction. All dtypes but i8, u8 and bool (use astype).
TAPEDECK_EXPORT Tensor sum(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
/// Product; 1 for an empty reduction. The gradient is exact for zero elements, too. All dtypes but i8, u8 and
/// bool (use astype).
TAPEDECK_EXPORT Tensor prod(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
/// Arithmetic mean; NaN for an empty reduction. Floating-point and complex dtypes (integers: use astype).
TAPEDECK_EXPORT Tensor mean(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
/// Logarithm of the sum of exponentials, log Σ exp(x), without overflow; -inf for an empty reduction. The
/// gradient is the softmax. Floating-point dtypes.
TAPEDECK_EXPORT Tensor logsumexp(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
/// Maximum and minimum; NaN if an element is NaN. Elements that attain the extremum share the gradient
/// equally. Floating-point and integer dtypes. Throw ShapeError for an empty reduction.
TAPEDECK_EXPORT Tensor max(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
TAPEDECK_EXPORT Tensor min(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
/// Index (i64) of the first maximum and minimum along `axis`, or of the first NaN if there is one. No
/// gradient. Floating-point and integer dtypes. Throw ShapeError if the axis is empty.
TAPEDECK_EXPORT Tensor argmax(const Tensor& x, int axis = -1, ReduceOptions options = {});
TAPEDECK_EXPORT Tensor argmin(const Tensor& x, int axis = -1, ReduceOptions options = {});
/// Whether any or all elements of a bool tensor are true; false and true for an empty reduction. No gradient.
/// Throw DTypeError for other dtypes: compare first, as in any(x > 0).
TAPEDECK_EXPORT Tensor any(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
TAPEDECK_EXPORT Tensor all(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
/// √Σ|x|², without overflow. The gradient is x / y, hence NaN if all elements are zero. Floating-point and
/// complex dtypes; real for complex x.
TAPEDECK_EXPORT Tensor euclidean_norm(const Tensor& x, const Axes& axes = {}, ReduceOptions options = {});
}   // namespace tapedeck
