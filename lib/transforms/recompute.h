// Functions that run once more when their gradient is asked for.
#pragma once
#include "tapedeck/function.h"

namespace tapedeck {

/// first(x), shown to the thread's recorders as one operation of which tapes keep x and what the function
/// captures alone. Its gradient runs again(x), which must compute the same, under a tape of its own; its
/// tangents run it under an accumulator. x, and what is captured of tensors and variables that recorders
/// follow, get gradients, zeros where there is no path. `again` is kept as long as tapes keep the operation.
/// Throws GradientError where a variable that it reads has been updated in the meantime, ArgumentError where
/// it updates one itself.
std::vector<Tensor> recomputed(std::string_view name, std::span<const Tensor> x, const Function& first,
                               Function again);

}   // namespace tapedeck
