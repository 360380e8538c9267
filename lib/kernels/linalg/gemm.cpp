// Matrix products by OpenBLAS, kept on the calling thread. Small products too: for sizes from 8 to 64 a
// kernel of our own was not faster.
#include "kernels/linalg/gemm.h"

#include <cblas.h>

#include "core/fork.h"
#include "tapedeck/error.h"

extern "C" {
// Defined only if the process has loaded OpenMP, as OpenBLAS's OpenMP flavour does.
[[gnu::weak]] int omp_get_max_threads(void);
[[gnu::weak]] void omp_set_num_threads(int);
}

namespace tapedeck::kernels {
namespace {

CBLAS_TRANSPOSE flag(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }
blasint narrow(std::int64_t n) { return static_cast<blasint>(n); }

// OpenBLAS's pthreads flavour has one thread count per process. In its OpenMP flavour OpenMP's thread count,
// which is per calling thread, takes precedence.
bool by_openmp() {
  static const bool result = openblas_get_parallel() == 2 && omp_get_max_threads && omp_set_num_threads;
  return result;
}

// Returns the previous limit.
int limit_openmp(int n) {
  if (!by_openmp()) return 1;
  const int before = omp_get_max_threads();
  if (before != n) omp_set_num_threads(n);
  return before;
}

// Overlapping OneBlasThreads of several threads share the process's limit. Guarded by rare_lock.
int blas_users = 0, user_threads = 1;

void limit_process() {
  const std::lock_guard lock(rare_lock);
  if (blas_users++ > 0) return;
  user_threads = openblas_get_num_threads();
  if (user_threads != 1) openblas_set_num_threads(1);
}
void unlimit_process() {
  const std::lock_guard lock(rare_lock);
  if (--blas_users == 0 && user_threads != 1) openblas_set_num_threads(user_threads);
}

// CBLAS takes real factors by value and complex ones by address.
template <class T> T factor(const T& x) { return x; }
template <class T> const std::complex<T>* factor(const std::complex<T>& x) { return &x; }

template <class F, class T> void multiply(F* blas, const Product<T>& p) {
  const T one(1), add = p.add ? one : T(0);
  const int before = limit_openmp(1);
  blas(CblasRowMajor, flag(p.a_transposed), flag(p.b_transposed), narrow(p.m), narrow(p.n), narrow(p.k),
       factor(one), p.a, narrow(p.lda), p.b, narrow(p.ldb), factor(add), p.y, narrow(p.ldy));
  limit_openmp(before);
}

}   // namespace

void gemm(const Product<float>& p) { multiply(cblas_sgemm, p); }
void gemm(const Product<double>& p) { multiply(cblas_dgemm, p); }
void gemm(const Product<std::complex<float>>& p) { multiply(cblas_cgemm, p); }
void gemm(const Product<std::complex<double>>& p) { multiply(cblas_zgemm, p); }

OneBlasThread::OneBlasThread() : of_openmp_(limit_openmp(1)) {
  if (!by_openmp()) limit_process();
  if ((by_openmp() ? omp_get_max_threads() : openblas_get_num_threads()) == 1) return;
  if (!by_openmp()) unlimit_process();
  throw InternalError("blas: OpenBLAS cannot be held at one thread");
}
OneBlasThread::~OneBlasThread() {
  if (by_openmp())
    limit_openmp(of_openmp_);
  else
    unlimit_process();
}

}   // namespace tapedeck::kernels
