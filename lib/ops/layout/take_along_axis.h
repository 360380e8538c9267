// The adjoint of take_along_axis, for rules.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

// Axes count from the end. Indices have `axes` axes; if the tensor has leading axes beyond those, the same
// indices apply to each of its entries there.
struct TakeAttrs {
  int axis, axes;
};
struct AddAttrs {
  Shape shape;
  int axis;
};

/// Zeros of `shape`, with the leading axes that x has beyond it, to which the elements of x are added at
/// indices along an axis counted from the end.
Tensor add_along_axis(const Tensor& x, const Tensor& indices, const Shape& shape, int axis);

}   // namespace tapedeck
