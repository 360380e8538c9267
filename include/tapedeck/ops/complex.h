// Elementwise functions on complex numbers. The parts of c64 are f32, those of c128 f64. The gradient of a
// real number L with respect to z = x + iy is ∂L/∂x + i ∂L/∂y, as in TensorFlow and PyTorch: it is the
// direction of steepest ascent of L. A holomorphic function f maps an output gradient g to g · conj(f'(z)).
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// re + i im: c128 for f64, c64 for other floating-point dtypes. Shapes broadcast. Throws DTypeError for
/// other dtypes, and if the two dtypes differ.
TAPEDECK_EXPORT Tensor complex(const Tensor& re, const Tensor& im);
/// The real and imaginary part of z, in the dtype of the parts. If z is not complex: z itself and zeros.
/// Linear over the reals; the gradients are dy and i dy.
TAPEDECK_EXPORT Tensor real(const Tensor& z);
TAPEDECK_EXPORT Tensor imag(const Tensor& z);
/// The complex conjugate re - i im; z itself if it is not complex.
TAPEDECK_EXPORT Tensor conj(const Tensor& z);
/// The phase of z, atan2(imag(z), real(z)), in [-π, π], in the dtype of the parts; not differentiable at 0.
/// For floating-point z: π if z < 0, else 0, without a gradient. Throws DTypeError for other dtypes.
TAPEDECK_EXPORT Tensor angle(const Tensor& z);

/// Swaps the last two axes and conjugates each element; any dtype. Throws ShapeError if the rank is below 2.
TAPEDECK_EXPORT Tensor conjugate_transpose(const Tensor& x);

}   // namespace tapedeck
