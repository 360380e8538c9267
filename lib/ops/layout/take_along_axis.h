// The adjoint of take_along_axis, for rules.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

// Axes count from the end. Indices have `axes` axes; if the tensor has further leading axes, the same indices
// apply to every entry along them.
struct TakeAttrs {
  int axis, axes;
};
struct AddAttrs {
  Shape shape;
  int axis;
};

/// Adds the elements of x to zeros, at indices along an axis counted from the end. The zeros have `shape`,
/// preceded by any further leading axes of x.
Tensor add_along_axis(const Tensor& x, const Tensor& indices, const Shape& shape, int axis);

}   // namespace tapedeck
