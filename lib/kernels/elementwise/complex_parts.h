// Conversions between complex numbers and their parts. All tensors of a call have one shape; z is complex,
// the others have the real dtype of its parts.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// z = re + i im.
void join_parts(const Tensor& re, const Tensor& im, Tensor& z);
void real_parts(const Tensor& z, Tensor& y);
void imaginary_parts(const Tensor& z, Tensor& y);
void conjugates(const Tensor& z, Tensor& y);   // y is complex
/// |z| without intermediate overflow, and the angle in [-π, π].
void magnitudes(const Tensor& z, Tensor& y);
void angles(const Tensor& z, Tensor& y);

}   // namespace tapedeck::kernels
