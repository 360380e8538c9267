// Matrix products.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Which of the two matrices are read transposed.
struct Transposed {
  bool a = false, b = false;
};

/// Matrix product over the last two axes; the axes before them broadcast. f32, f64, c64 or c128, of rank 2 or
/// more. To read transposed is not to conjugate.
TAPEDECK_EXPORT Tensor matmul(const Tensor& a, const Tensor& b, Transposed transposed = {});

}   // namespace tapedeck
