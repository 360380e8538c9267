// Ops that come with a backward function of their own.
#pragma once
#include "tapedeck/record_operation.h"

namespace tapedeck {

/// A backward function that may skip the gradients of inputs whose bits are 0 in `wanted`, which has bits for
/// the first 64 inputs.
using WantedBackward =
    std::function<std::vector<Gradient>(std::span<const Tensor> output_gradients, std::uint64_t wanted)>;

/// record_operation() for a backward function that also accepts stacked output gradients, which have one more
/// leading axis, and then returns stacked gradients.
void record_stacking_operation(std::string name, std::span<const Tensor> outputs,
                               std::span<const Tensor> inputs, WantedBackward backward, Pushforward forward);

/// record_operation() for a backward function that accepts undefined tensors for outputs without a gradient.
void record_operation_accepting_none(std::string name, std::span<const Tensor> outputs,
                                     std::span<const Tensor> inputs, Backward backward, Pushforward forward);

}   // namespace tapedeck
