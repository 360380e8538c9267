// nextafter for f16 and bf16. Other elementwise ops compute halves in f32, but the neighbors of a number
// depend on its type.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// y = nextafter(a, b). a and b have the dtype of y, and broadcast to it.
void next_half(const Tensor& a, const Tensor& b, Tensor& y);

}   // namespace tapedeck::kernels
