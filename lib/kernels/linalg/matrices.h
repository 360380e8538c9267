// Batches of matrices: which one belongs to which result, and work on each of them, on several threads.
#pragma once
#include <algorithm>
#include <mutex>

#include "core/parallel.h"
#include "kernels/linalg/gemm.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// The extent of axis -back.
inline std::int64_t extent(const Tensor& x, int back) { return x.shape()[x.ndim() - back]; }
/// How many matrices x holds.
inline std::int64_t matrices(const Tensor& x) {
  std::int64_t n = 1;
  for (int back = 3; back <= x.ndim(); ++back)
    n *= extent(x, back);
  return n;
}

/// Which matrix of x belongs to the i-th of y, to whose shape x's axes before the last two broadcast.
inline std::int64_t matrix_of(const Shape& x, const Shape& y, std::int64_t i) {
  std::int64_t matrix = 0, stride = 1;
  for (int back = 3; back <= x.ndim(); ++back) {
    const std::int64_t extent = x[x.ndim() - back], repeats = y[y.ndim() - back];
    if (extent != 1) matrix += i % repeats * stride;
    stride *= extent;
    i /= repeats;
  }
  return matrix;
}

/// The first matrix of a batch that an algorithm cannot take, and a number that says more; none if all is
/// well.
struct Failure {
  std::int64_t matrix = -1, at = 0;
  explicit operator bool() const { return matrix >= 0; }
};

/// f(i) for i < count, each of `work` multiplications and on one thread, with BLAS on the same. What f
/// returns is 0 if all is well.
template <class F> Failure for_each_matrix(std::int64_t count, std::int64_t work, const F& f) {
  constexpr Cut kWork = {1 << 14, 1 << 16};
  constexpr std::int64_t kCall = 500;   // of LAPACK, in multiplications
  std::mutex lock;
  Failure first;
  parallel_for(count, cut_of(kWork, work + kCall), [&](std::int64_t begin, std::int64_t end) {
    const OneBlasThread guard;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t at = f(i);
      if (at == 0) continue;
      const std::lock_guard holding(lock);
      if (!first || i < first.matrix) first = {i, at};
      return;
    }
  });
  return first;
}

/// Whether no element is NaN or infinite: LAPACK need not end with such.
template <class T> bool finite(const T* x, std::int64_t n) {
  T zero = 0;
  for (std::int64_t i = 0; i < n; ++i)
    zero += x[i] * T(0);
  return zero == T(0);
}

}   // namespace tapedeck::kernels
