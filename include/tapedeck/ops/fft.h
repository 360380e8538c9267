// Discrete Fourier transforms Σ x[j] exp(-2πi jk / n) over the last one, two or three axes, and their
// inverses, which divide by the number of elements. Leading axes are batch axes. Any length n needs O(n log
// n) operations. Linear: the gradient is the adjoint transform of dy.
#pragma once
#include "tapedeck/ints.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Transforms of c64 or c128 over the last one, two or three axes, and their inverses; the result has the
/// shape of x. Throw DTypeError for other dtypes; ShapeError for too few axes or an empty transformed axis.
TAPEDECK_EXPORT Tensor fft(const Tensor& x);
TAPEDECK_EXPORT Tensor ifft(const Tensor& x);
TAPEDECK_EXPORT Tensor fft2d(const Tensor& x);
TAPEDECK_EXPORT Tensor ifft2d(const Tensor& x);
TAPEDECK_EXPORT Tensor fft3d(const Tensor& x);
TAPEDECK_EXPORT Tensor ifft3d(const Tensor& x);

/// Transforms of real numbers: c128 for f64, c64 for other floating-point dtypes. Along the last axis, the
/// result has the first n / 2 + 1 entries; the others are their conjugates. If `fft_length` is given, it has
/// an extent for each transformed axis, to which x is first truncated or zero-padded. Throw as fft does, and
/// ShapeError for other lengths.
TAPEDECK_EXPORT Tensor rfft(const Tensor& x, Ints fft_length = {});
TAPEDECK_EXPORT Tensor rfft2d(const Tensor& x, Ints fft_length = {});
TAPEDECK_EXPORT Tensor rfft3d(const Tensor& x, Ints fft_length = {});
/// The inverses of the real transforms: f32 for c64, f64 for c128, with extents `fft_length`. By default the
/// last extent is 2 (n - 1) for n entries of x: pass `fft_length` if it was odd. Components of x that a
/// transform of real numbers cannot have, such as the imaginary part of the first entry, are ignored.
TAPEDECK_EXPORT Tensor irfft(const Tensor& x, Ints fft_length = {});
TAPEDECK_EXPORT Tensor irfft2d(const Tensor& x, Ints fft_length = {});
TAPEDECK_EXPORT Tensor irfft3d(const Tensor& x, Ints fft_length = {});

}   // namespace tapedeck
