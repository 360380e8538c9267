// Selects single elements along an axis. Indices are integers; one out of range throws ShapeError.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// y[…, k, …] = x[…, indices[…, k, …], …] along `axis`, for indices such as those of argsort or argmax.
/// indices has the shape of x except along that axis; if not, throws ShapeError. All dtypes. Gradients of an
/// element selected several times add up.
TAPEDECK_EXPORT Tensor take_along_axis(const Tensor& x, const Tensor& indices, int axis = -1);

}   // namespace tapedeck
