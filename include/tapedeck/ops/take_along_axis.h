// Single elements along an axis, chosen by an index each.
// Indices are i32 or i64 and checked: one out of range throws ShapeError.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Single elements along axis: y[…, k, …] = x[…, indices[…, k, …], …]. indices has x's shape but for that
/// axis.
TAPEDECK_EXPORT Tensor take_along_axis(const Tensor& x, const Tensor& indices, int axis = -1);

}   // namespace tapedeck
