// Operations that were computed elsewhere, for tapes and accumulators to differentiate.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tapedeck/gradient.h"

namespace tapedeck {

/// From the gradients of all outputs (zeros where nothing came), that of every input, in their order; none
/// where there is none.
using Backward = std::function<std::vector<Gradient>(std::span<const Tensor> output_gradients)>;
/// From the tangents of all inputs (undefined where there is none), those of the outputs.
using Pushforward = std::function<std::vector<Tensor>(std::span<const Tensor> tangents)>;

/// Shows outputs, however they were computed, to the thread's tapes and accumulators as the result of one
/// operation on inputs. What computed them should run under StopRecording, else the tapes follow both ways.
/// name appears in messages. A backward that returns another number of gradients makes gradient() throw
/// ArgumentError; without a forward, accumulators transpose the backward, which must be linear in what it
/// gets.
TAPEDECK_EXPORT void record_operation(std::string name, std::span<const Tensor> outputs,
                                      std::span<const Tensor> inputs, Backward backward,
                                      Pushforward forward = {});

}   // namespace tapedeck
