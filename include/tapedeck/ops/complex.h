// Complex numbers, element by element: their parts, and from their parts. c64 has parts of f32, c128 of f64.
//
// The gradient of a real number L with respect to z = x + iy is ∂L/∂x + i ∂L/∂y, as in TensorFlow and
// PyTorch: descending along it makes L smaller. Through a function f that has a complex derivative, a
// gradient g becomes g · conj(f'(z)).
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// re + i im: f32 makes c64, f64 c128; shapes broadcast. Throws DTypeError for other dtypes, and where they
/// differ.
TAPEDECK_EXPORT Tensor complex(const Tensor& re, const Tensor& im);
/// The parts of z, in the dtype of the parts. Of a tensor that is not complex: itself, and zeros.
TAPEDECK_EXPORT Tensor real(const Tensor& z);
TAPEDECK_EXPORT Tensor imag(const Tensor& z);
/// re - i im. Of a tensor that is not complex: itself.
TAPEDECK_EXPORT Tensor conj(const Tensor& z);
/// The angle of z with the positive real axis, in (-π, π], in the dtype of the parts; the gradient at 0 is
/// NaN. For f32 and f64 it is π below 0, else 0, without a gradient.
TAPEDECK_EXPORT Tensor angle(const Tensor& z);

/// The last two axes exchanged, and conj of each element; any dtype. Throws ShapeError below rank 2.
TAPEDECK_EXPORT Tensor conjugate_transpose(const Tensor& x);

}   // namespace tapedeck
