// Softmax, for floating-point dtypes.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// exp(x) / Σ exp(x) along `axis`, computed without overflow. Throws ShapeError if the axis is out of range.
TAPEDECK_EXPORT Tensor softmax(const Tensor& x, int axis = -1);
/// x - log Σ exp(x) along `axis`, computed without overflow: more accurate than log(softmax(x)). Throws
/// ShapeError if the axis is out of range.
TAPEDECK_EXPORT Tensor log_softmax(const Tensor& x, int axis = -1);

}   // namespace tapedeck
