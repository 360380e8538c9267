// Sum of several tensors of one shape.
#pragma once
#include "tapedeck/refs.h"

namespace tapedeck::kernels {

/// y = the sum of all x, in one pass. y may share memory with one of them.
void add_n(Refs x, Tensor& y);

}   // namespace tapedeck::kernels
