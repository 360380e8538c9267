// Discrete Fourier transforms of any length n in O(n log n). Results do not depend on the number of threads.
#pragma once
#include <complex>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// An array seen as [outer, n, inner], transformed along the middle axis: in outer · inner lines.
struct FftLines {
  std::int64_t outer, n, inner;
};

/// y[k] = scale Σ x[j] exp(∓2πi jk / n), with + if inverse. y may be x. T is float or double.
template <class T>
void fft(const std::complex<T>* x, const FftLines& lines, bool inverse, T scale, std::complex<T>* y);
/// The first n / 2 + 1 entries of the transforms of rows of n real numbers; the others are their conjugates.
template <class T> void rfft(const T* x, std::int64_t rows, std::int64_t n, std::complex<T>* y);
/// The inverse of rfft, from rows of n / 2 + 1 entries to n real numbers. Ignores imaginary parts that are
/// zero in transforms of real numbers.
template <class T> void irfft(const std::complex<T>* x, std::int64_t rows, std::int64_t n, T* y);

/// Transforms x along its axes from `first` to `end` - 1, counted from the end, and multiplies by scale; y
/// may be x.
void fft_along(const Tensor& x, int first, int end, bool inverse, double scale, Tensor& y);
/// rfft and irfft along the last axis.
void rfft_rows(const Tensor& x, Tensor& y);
void irfft_rows(const Tensor& x, Tensor& y);

}   // namespace tapedeck::kernels
