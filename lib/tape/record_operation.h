// Ops that come with a backward function of their own.
#pragma once
#include "tapedeck/record_operation.h"

namespace tapedeck {

/// A backward that need not compute the gradients of inputs whose bits are 0 in `wanted`; there are bits for
/// the first 64.
using WantedBackward =
    std::function<std::vector<Gradient>(std::span<const Tensor> output_gradients, std::uint64_t wanted)>;

/// record_operation() for a backward that also takes output gradients with a further axis in front, and gives
/// such.
void record_stacking_operation(std::string name, std::span<const Tensor> outputs,
                               std::span<const Tensor> inputs, WantedBackward backward, Pushforward forward);

}   // namespace tapedeck
