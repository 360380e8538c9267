// The adjoint of take_along_axis, for rules.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

// Axes count from the end. Indices have `axes` axes; a tensor with more in front uses them for each entry
// there.
struct TakeAttrs {
  int axis, axes;
};
struct AddAttrs {
  Shape shape;
  int axis;
};

/// Zeros of shape, behind the axes that x has in front, with the elements of x added at indices along an
/// axis, counted from the end.
Tensor add_along_axis(const Tensor& x, const Tensor& indices, const Shape& shape, int axis);

}   // namespace tapedeck
