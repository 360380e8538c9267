// Records operations that were computed elsewhere, so that tapes and accumulators differentiate them.
#pragma once
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "tapedeck/gradient.h"

namespace tapedeck {

/// Maps the gradients of all outputs (zeros for unused outputs) to the gradient of every input, in order, or
/// none.
using Backward = std::function<std::vector<Gradient>(std::span<const Tensor> output_gradients)>;
/// Maps the tangents of all inputs (undefined for inputs without one) to the tangents of the outputs.
using Pushforward = std::function<std::vector<Tensor>(std::span<const Tensor> tangents)>;

/// Records `outputs`, however they were computed, on the thread's tapes and accumulators as the result of one
/// op on `inputs`. Compute them under StopRecording, otherwise the tapes also record that computation. `name`
/// appears in messages. gradient() throws ArgumentError if `backward` returns a wrong number of gradients.
/// Without `forward`, accumulators transpose `backward`, which must then be linear in the output gradients;
/// if `forward` returns undefined tensors, the outputs have no tangents. Without `backward`, only
/// accumulators record the operation. Throws ArgumentError without both. Without outputs, nothing is
/// recorded.
TAPEDECK_EXPORT void record_operation(std::string name, std::span<const Tensor> outputs,
                                      std::span<const Tensor> inputs, Backward backward,
                                      Pushforward forward = {});
/// record_operation with lists in braces: record_operation("cube", {y}, {x}, …).
inline void record_operation(std::string name, std::initializer_list<Tensor> outputs,
                             std::initializer_list<Tensor> inputs, Backward backward,
                             Pushforward forward = {}) {
  record_operation(std::move(name), std::span(outputs.begin(), outputs.size()),
                   std::span(inputs.begin(), inputs.size()), std::move(backward), std::move(forward));
}

}   // namespace tapedeck
