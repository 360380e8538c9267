// Discrete Fourier transforms of the last one, two or three axes, batched over those in front: Σ x[j]
// exp(-2πi jk / n), and inverses, which divide by the number of elements. Any length takes O(n log n).
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

// Of c64 and c128, of the same shape. Throw DTypeError for other dtypes; ShapeError for too few axes or one
// without elements.
TAPEDECK_EXPORT Tensor fft(const Tensor& x);
TAPEDECK_EXPORT Tensor ifft(const Tensor& x);
TAPEDECK_EXPORT Tensor fft2d(const Tensor& x);
TAPEDECK_EXPORT Tensor ifft2d(const Tensor& x);
TAPEDECK_EXPORT Tensor fft3d(const Tensor& x);
TAPEDECK_EXPORT Tensor ifft3d(const Tensor& x);

// Of real numbers, f32 or f64: c64 or c128 with the first n / 2 + 1 entries along the last axis; the others
// are their conjugates. Where fft_length has an extent for each transformed axis, x is cut or filled up with
// zeros to it first.
TAPEDECK_EXPORT Tensor rfft(const Tensor& x, const Shape& fft_length = {});
TAPEDECK_EXPORT Tensor rfft2d(const Tensor& x, const Shape& fft_length = {});
TAPEDECK_EXPORT Tensor rfft3d(const Tensor& x, const Shape& fft_length = {});
// Their inverses: c64 or c128 to f32 or f64, of extents fft_length. Without it the last one is even, 2 (n -
// 1) for n entries of x. Parts of x that no real numbers have, as the imaginary part of the first entry, do
// not count.
TAPEDECK_EXPORT Tensor irfft(const Tensor& x, const Shape& fft_length = {});
TAPEDECK_EXPORT Tensor irfft2d(const Tensor& x, const Shape& fft_length = {});
TAPEDECK_EXPORT Tensor irfft3d(const Tensor& x, const Shape& fft_length = {});

}   // namespace tapedeck
