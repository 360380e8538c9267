// One product of two matrices by BLAS. All matrix products of the library go through gemm().
#pragma once
#include <algorithm>
#include <complex>
#include <cstdint>

namespace tapedeck::kernels {

/// y = a b, or y += a b if `add`. All matrices are row-major: y is m × n, a is m × k and b is k × n, or
/// stored transposed. lda, ldb and ldy are the distances of rows as stored. All numbers are below 2^31.
template <class T> struct MatrixProduct {
  std::int64_t m, n, k;
  const T *a, *b;
  T* y;
  bool a_transposed = false, b_transposed = false;
  std::int64_t lda, ldb, ldy;
  bool add = false;

  MatrixProduct rows(std::int64_t begin, std::int64_t end) const {
    MatrixProduct p = *this;
    p.m = end - begin, p.a += begin * (a_transposed ? 1 : lda), p.y += begin * ldy;
    return p;
  }
  MatrixProduct columns(std::int64_t begin, std::int64_t end) const {
    MatrixProduct p = *this;
    p.n = end - begin, p.b += begin * (b_transposed ? ldb : 1), p.y += begin;
    return p;
  }
};

/// The number of rows or columns in each panel if `lines` rows or columns are cut into `panels` panels: a
/// multiple of 64, for the blocks of BLAS, or all of them.
inline std::int64_t lines_of_panel(std::int64_t lines, std::int64_t panels) {
  return std::min(lines, ((lines + panels - 1) / panels + 63) / 64 * 64);
}

/// Whether the processor has AVX-512, which OpenBLAS then uses.
bool has_avx512();

/// Computes on the calling thread. A OneBlasThread must be alive on some thread.
void gemm(const MatrixProduct<float>& p);
void gemm(const MatrixProduct<double>& p);
void gemm(const MatrixProduct<std::complex<float>>& p);
void gemm(const MatrixProduct<std::complex<double>>& p);

/// Scope in which BLAS and LAPACK calls of this thread run on this thread alone. Restores the user's number
/// of threads at its end. Throws InternalError if BLAS ignores the limit.
class OneBlasThread {
 public:
  OneBlasThread();
  ~OneBlasThread();
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;

 private:
  int of_openmp_;
};

}   // namespace tapedeck::kernels
