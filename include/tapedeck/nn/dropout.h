// Dropout.
#pragma once
#include "tapedeck/nn/run.h"
#include "tapedeck/tensor.h"

namespace tapedeck::nn {

/// In training, tapedeck::dropout with the key of the run; else x. Throws ArgumentError for a run that trains
/// without a key, and unless 0 ≤ rate < 1.
struct Dropout {
  double rate = 0.5;

  /// The result for x.
  TAPEDECK_EXPORT Tensor operator()(const Tensor& x, Run run = {}) const;
};

}   // namespace tapedeck::nn
