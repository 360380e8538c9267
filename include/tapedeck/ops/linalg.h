// Matrix products.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Which of the two matrices are read transposed.
struct Transposed { bool a = false, b = false; };

/// Matrix product over the last two axes; the axes before them broadcast. f32 and f64, of rank 2 or more.
TAPEDECK_EXPORT Tensor matmul(const Tensor& a, const Tensor& b, Transposed transposed = {});

}  // namespace tapedeck
