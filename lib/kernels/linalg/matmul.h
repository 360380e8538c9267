// Batched matrix products over the last two axes, of f32, f64, c64 or c128; the axes before them broadcast.
// Each operand may be read transposed.
#pragma once
#include "tapedeck/ops/matmul.h"

namespace tapedeck::kernels {

/// Extents are below 2^31. Results do not depend on the number of threads.
void matmul(const Tensor& a, const Tensor& b, Transposed transposed, Tensor& y);

}   // namespace tapedeck::kernels
