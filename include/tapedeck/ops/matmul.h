// Matrix products.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Which of the matrices are transposed (not conjugated).
struct Transposed {
  bool a = false, b = false;
};

/// The matrix product over the last two axes; leading axes broadcast. f32, f64, c64 or c128, of rank 2 or
/// more.
TAPEDECK_EXPORT Tensor matmul(const Tensor& a, const Tensor& b, Transposed transposed = {});

}   // namespace tapedeck
