// Bias and dropout.
#pragma once
#include "tapedeck/ops/random.h"

namespace tapedeck {

/// x plus a bias [n] along its last axis, of the dtypes that add() accepts. Throws ShapeError unless the bias
/// has that shape.
TAPEDECK_EXPORT Tensor bias_add(const Tensor& x, const Tensor& bias);
/// Sets each element to 0 with probability `rate`, as determined by the key, and scales the others by 1 / (1
/// - rate), so that the mean is unchanged (Srivastava et al. 2014). The gradient is scaled likewise.
/// Floating-point dtypes. Throws ArgumentError unless 0 ≤ rate < 1.
TAPEDECK_EXPORT Tensor dropout(const Tensor& x, double rate, random::Key key);

}   // namespace tapedeck
