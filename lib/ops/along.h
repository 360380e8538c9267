// The adjoint of take_along_axis, along the last axis, for rules.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Zeros of shape, behind the axes that x has in front, with the elements of x added at indices along the last axis.
Tensor put_along_last(const Tensor& x, const Tensor& indices, const Shape& shape);

}  // namespace tapedeck
