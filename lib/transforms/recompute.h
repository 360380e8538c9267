// Recomputation (checkpointing): functions that run a second time when their gradient is computed.
#pragma once
#include "tapedeck/function.h"

namespace tapedeck {

/// Runs first(x) and records it as one operation, for which tapes keep only x and the tensors that the
/// function captures. The vjp of the operation runs again(x), which must compute the same values, under a
/// tape of its own; the jvp runs it under an accumulator. x, and the captured tensors and variables that
/// recorders follow, receive gradients, which are zeros if there is no path. `again` is kept as long as a
/// tape keeps the operation. Throws ArgumentError if the function updates a variable that it reads; the vjp
/// and jvp throw GradientError if such a variable has been updated since.
std::vector<Tensor> recomputed(std::string_view name, std::span<const Tensor> x, const Function& first,
                               Function again);

}   // namespace tapedeck
