// Reductions over axes.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Which axes to reduce: none given means all. Negative axes count from the end.
struct Axes {
  Axes() = default;
  Axes(int axis) : all(false), list{axis} {}
  Axes(std::initializer_list<int> axes) : all(false), list(axes) {}
  Axes(std::vector<int> axes) : all(false), list(std::move(axes)) {}

  bool all = true;
  std::vector<int> list;
};

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
/// √Σx². The gradient is x / y: NaN where all elements are zero. f32, f64.
TAPEDECK_EXPORT Tensor euclidean_norm(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
}   // namespace tapedeck
