// The adjoint of take_along_axis, for rules.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Zeros of shape, behind the axes that x has in front, with the elements of x added at indices along an
/// axis, counted from the end.
Tensor add_along_axis(const Tensor& x, const Tensor& indices, const Shape& shape, int axis);

}   // namespace tapedeck
