// Dropout.
#pragma once
#include "tapedeck/nn/run.h"
#include "tapedeck/tensor.h"

namespace tapedeck::nn {

/// In training, applies tapedeck::dropout with the key of the run, and throws ArgumentError without a key or
/// unless 0 ≤ rate < 1. Otherwise returns x.
struct Dropout {
  double rate = 0.5;

  /// Applies the layer to x.
  TAPEDECK_EXPORT Tensor operator()(const Tensor& x, Run run = {}) const;
};

}   // namespace tapedeck::nn
