// Runs the kernel of a call, without checks, recording or observers.
#pragma once
#include "tapedeck/op.h"

namespace tapedeck {

/// Calls the op's kernel. Throws InternalError if it replaces an output that dispatch has allocated.
void call_kernel(const Call& c, std::span<Tensor> y);

/// Computes the outputs y, which are allocated already unless the op has Outputs::by_kernel.
void run_kernel(const Call& c, std::span<Tensor> y);

}   // namespace tapedeck
