// One product of two matrices by BLAS: the door that every kernel with products goes through.
#pragma once
#include <complex>
#include <cstdint>

namespace tapedeck::kernels {

/// y = a b, or y += a b. All row-major: y is m × n, a is m × k and b is k × n, stored so or transposed; ld…
/// are the distances of rows as stored. Every number is below 2^31.
template <class T> struct Product {
  std::int64_t m, n, k;
  const T *a, *b;
  T* y;
  bool a_transposed = false, b_transposed = false;
  std::int64_t lda, ldb, ldy;
  bool add = false;

  Product rows(std::int64_t begin, std::int64_t end) const {
    Product p = *this;
    p.m = end - begin, p.a += begin * (a_transposed ? 1 : lda), p.y += begin * ldy;
    return p;
  }
  Product columns(std::int64_t begin, std::int64_t end) const {
    Product p = *this;
    p.n = end - begin, p.b += begin * (b_transposed ? ldb : 1), p.y += begin;
    return p;
  }
};

/// On the calling thread, while a OneBlasThread lives on this thread or another.
void gemm(const Product<float>& p);
void gemm(const Product<double>& p);
void gemm(const Product<std::complex<float>>& p);
void gemm(const Product<std::complex<double>>& p);

/// What this thread asks of BLAS and LAPACK runs on this thread while this lives; then the user's number of
/// threads holds again. Throws InternalError where BLAS does not obey.
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
