// Biases and dropout. f32 and f64.
#pragma once
#include "tapedeck/ops/random.h"

namespace tapedeck {

/// x plus a bias [n] along its last axis. Throws ShapeError for any other bias.
TAPEDECK_EXPORT Tensor bias_add(const Tensor& x, const Tensor& bias);
/// Zero for a share `rate` of the elements, which the key chooses, and x / (1 - rate) for the others. Throws
/// ArgumentError unless rate is at least 0 and less than 1.
TAPEDECK_EXPORT Tensor dropout(const Tensor& x, double rate, random::Key key);

}   // namespace tapedeck
