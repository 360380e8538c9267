// Batched matrix products over the last two axes, of f32, f64, c64 or c128, or of f16 or bf16 by way of
// f32; the axes before them broadcast. Each operand may be read transposed.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Which of the two matrices are read transposed.
struct ReadTransposed {
  bool a, b;
};

/// y = a b, or y += a b if `add`, which f16 and bf16 do not support. Extents are below 2^31. Results do not
/// depend on the number of threads.
void matmul(const Tensor& a, const Tensor& b, ReadTransposed transposed, Tensor& y, bool add = false);

}   // namespace tapedeck::kernels
