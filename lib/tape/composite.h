// Ops that come with a backward function of their own.
#pragma once
#include "tapedeck/record_operation.h"

namespace tapedeck {

/// record_operation() for a backward that also takes output gradients with a further axis in front, and gives
/// such.
void record_stacking_operation(std::string name, std::span<const Tensor> outputs,
                               std::span<const Tensor> inputs, Backward backward, Pushforward forward);

}   // namespace tapedeck
