// The kernel of a call alone: nothing is checked, recorded or observed.
#pragma once
#include "tapedeck/op.h"

namespace tapedeck {

/// Fills the outputs, which are allocated unless the kernel provides them.
void run_kernel(const Call& c, std::span<Tensor> y);

}   // namespace tapedeck
