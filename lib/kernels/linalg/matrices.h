// Batches of matrices: the matrices of a broadcast operand, and parallel loops over a batch.
#pragma once
#include <algorithm>
#include <mutex>

#include "core/parallel.h"
#include "kernels/linalg/gemm.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// The extent of axis -back.
inline std::int64_t extent(const Tensor& x, int back) { return x.shape()[x.ndim() - back]; }
/// The number of matrices in x. Throws ShapeError if it overflows, as it may if they have no elements.
inline std::int64_t matrices(const Tensor& x) {
  return Shape(x.shape().dims().first(static_cast<std::size_t>(x.ndim() - 2))).size();
}

/// The index of the matrix of x that belongs to matrix i of y. The batch axes of x, those before the last
/// two, broadcast to those of y.
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

/// The first matrix of a batch for which an algorithm fails, with a detail such as a pivot index; matrix is
/// -1 for success.
struct Failure {
  std::int64_t matrix = -1, at = 0;
  explicit operator bool() const { return matrix >= 0; }
};

/// Calls f(i) for i < count in parallel, each on one thread and with BLAS on that thread. `work` is the
/// number of multiplications of a call. f returns 0 for success.
template <class F> Failure for_each_matrix(std::int64_t count, std::int64_t work, const F& f) {
  constexpr Cut kWork = {1 << 14, 1 << 16};
  constexpr std::int64_t kCall = 500;   // cost of a LAPACK call, in multiplications
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

/// Whether all elements are finite. LAPACK may not terminate otherwise.
template <class T> bool finite(const T* x, std::int64_t n) {
  T zero = 0;
  for (std::int64_t i = 0; i < n; ++i)
    zero += x[i] * T(0);
  return zero == T(0);
}

}   // namespace tapedeck::kernels
