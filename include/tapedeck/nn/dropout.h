// Dropout.
#pragma once
#include "tapedeck/nn/run.h"
#include "tapedeck/tensor.h"

namespace tapedeck::nn {

/// In training, tapedeck::dropout with the key of the run, which throws ArgumentError without a key and
/// unless 0 ≤ rate < 1; else x.
struct Dropout {
  double rate = 0.5;

  /// The result for x.
  TAPEDECK_EXPORT Tensor operator()(const Tensor& x, Run run = {}) const;
};

}   // namespace tapedeck::nn
