// Functions that are run again when their gradient is computed (checkpointing).
#pragma once
#include "tapedeck/function.h"

namespace tapedeck {

/// Runs first(x) and records it as one operation, for which tapes keep only x and what the function captures.
/// Its gradient runs again(x), which must compute the same, under a tape of its own; its tangents run it
/// under an accumulator. Gradients go to x and to the captured tensors and variables that recorders follow;
/// they are zeros if there is no path. `again` lives as long as a tape keeps the operation. Throws
/// GradientError if a variable that the function reads has been updated since, and ArgumentError if the
/// function itself updates it.
std::vector<Tensor> recomputed(std::string_view name, std::span<const Tensor> x, const Function& first,
                               Function again);

}   // namespace tapedeck
