// Matrix products.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Options of matmul: which of the matrices are transposed (not conjugated).
struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
};

/// The matrix product over the last two axes, y[…, i, j] = Σₖ a[…, i, k] b[…, k, j]; leading axes broadcast.
/// Floating-point and complex dtypes; mixed ones are promoted. Throws ShapeError if the rank is below 2, the
/// inner extents differ or leading axes do not broadcast.
TAPEDECK_EXPORT Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options = {});

}   // namespace tapedeck
