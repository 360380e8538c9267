// nextafter of f16 and bf16. Other elementwise ops compute halves in f32, but what is next to a number is a
// matter of its type.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// a and b, of the half type of y, broadcast.
void next_half(const Tensor& a, const Tensor& b, Tensor& y);

}   // namespace tapedeck::kernels
