// Slices along one axis, chosen by indices that are known to be in range.
#pragma once
#include "kernels/places.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// y[b, k, a] = x[b, indices[k], a]; x is seen as `around`.
void gather(const Tensor& x, const Tensor& indices, const AroundAxis& around, Tensor& y);
/// y = 0, then y[b, indices[k], a] += x[b, k, a] in the order of k; y is seen as `around`. Not for bool.
void scatter_add(const Tensor& x, const Tensor& indices, const AroundAxis& around, Tensor& y);

}  // namespace tapedeck::kernels
