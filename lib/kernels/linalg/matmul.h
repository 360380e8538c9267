// Matrix products. In: a and b, of one dtype, f32 or f64; each may be read transposed. Out: y, the products
// over the last two axes, where the axes before them are broadcast.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Which of the two matrices are read transposed.
struct ReadTransposed {
  bool a, b;
};

/// Extents are below 2^31. Results do not depend on the number of threads.
void matmul(const Tensor& a, const Tensor& b, ReadTransposed transposed, Tensor& y);

}   // namespace tapedeck::kernels
