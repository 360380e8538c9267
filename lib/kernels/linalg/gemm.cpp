// Matrix products by OpenBLAS, kept on the calling thread, and f32 products by oneDNN if it is faster. For
// sizes from 8 to 64, a separate kernel was not faster than BLAS. Products of a few numbers, such as
// transforms of points, are computed by a loop, which takes less time than a call of BLAS. Products of a
// matrix and a vector use gemv, which does not pack the matrix, and takes a fifth to a half of the time.
#include "kernels/linalg/gemm.h"

#include <cblas.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/fork.h"
#include "core/format.h"
#include "kernels/linalg/onednn_gemm.h"
#include "kernels/simd/simd.h"
#include "tapedeck/error.h"

extern "C" {
// Defined only if the process has loaded OpenMP, as OpenBLAS's OpenMP flavour does.
[[gnu::weak]] int omp_get_max_threads(void);
[[gnu::weak]] void omp_set_num_threads(int);
// Whether OpenBLAS's threads exist, for which it waits at the end of the process. Defined only in its
// pthreads flavour.
[[gnu::weak]] extern int blas_server_avail;
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

// OpenBLAS allocates a buffer for each thread that computes concurrently, never frees it, and retries forever
// if there is no memory. Therefore, before more threads compute than ever before, memory for another buffer
// is allocated and freed again, which may fail.
constexpr std::size_t kBuffer = std::size_t{128} << 20;   // as on x86-64; on ARM it is a quarter
std::atomic<int> computing{0}, most_computing{0};
thread_local int entered = 0;

bool has_memory_for(int buffers) {
  const std::size_t bytes = kBuffer * static_cast<std::size_t>(buffers);
  void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return false;
  munmap(p, bytes);
  return true;
}

// If address space is limited, OpenBLAS's own threads may still be waiting for their buffers, and may
// allocate them first.
bool has_memory_left() {
  if (!has_memory_for(1)) return false;
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY) return true;
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!has_memory_for(1)) return false;
  }
  return true;
}

// The end of the process. OpenBLAS frees its buffers after the destruction of this library. Before that it
// ends its threads; a thread that has not started yet allocates a buffer first, and retries forever if there
// is no memory. In this case the threads are left to the end of the process.
constinit std::atomic<bool> over{false};
thread_local bool is_ending = false;
[[gnu::destructor]] void end() {
  is_ending = true;
  over = true;
  while (computing != 0 && !forked())   // a forked child counts threads of its parent
    std::this_thread::yield();
  if (&blas_server_avail && blas_server_avail && !has_memory_for(std::max(1, openblas_get_num_procs() - 1)))
    blas_server_avail = 0;
}
// Blocks a thread that is not waited for any more.
[[gnu::noinline]] void wait_for_end() {
  for (;;)
    std::this_thread::sleep_for(std::chrono::hours(1));
}

// For a processor that it does not know, OpenBLAS falls back to its kernels for Prescott (2004).
void warn_of_old_kernels() {
#ifdef __x86_64__
  static constinit std::atomic<bool> told{false};
  if (std::strcmp(openblas_get_corename(), "Prescott") != 0 || !__builtin_cpu_supports("avx2")) return;
  if (told.exchange(true)) return;
  warn(
      fmt::format("blas: OpenBLAS uses its kernels for processors of 2004 (Prescott), with which matrix "
                  "products can take ten times as long; set OPENBLAS_CORETYPE={} in the environment before "
                  "the program starts",
                  has_avx512() ? "SkylakeX" : "Haswell"));
#endif
}

void leave() {
  if (--entered == 0) computing.fetch_sub(1, std::memory_order_relaxed);
}
void enter() {
  // Before anything is counted, since a handler may throw or compute a product.
  if (entered == 0 && most_computing.load(std::memory_order_relaxed) == 0 && !over) [[unlikely]]
    warn_of_old_kernels();
  if (entered++ > 0) return;
  const int n = computing.fetch_add(1) + 1;
  if (over && !is_ending) [[unlikely]] {
    leave();
    wait_for_end();
  }
  int most = most_computing.load(std::memory_order_relaxed);
  if (n <= most) [[likely]]
    return;
  if (!has_memory_left()) {
    leave();
    throw OutOfMemory("blas: no memory for the 134217728 bytes of a buffer of OpenBLAS");
  }
  while (most < n && !most_computing.compare_exchange_weak(most, n, std::memory_order_relaxed)) {}
}

// CBLAS takes real factors by value and complex ones by address.
template <class T> T factor(const T& x) { return x; }
template <class T> const std::complex<T>* factor(const std::complex<T>& x) { return &x; }

// OpenBLAS's kernels add to y, which OpenBLAS sets to 0 first. Without AVX-512, its loop for this takes a
// fifth of the time of a small product, and y is set to 0 here instead.
template <class T> bool set_to_zero(const MatrixProduct<T>& p) {
  if (has_avx512()) return false;
  if (p.ldy == p.n) return std::fill_n(p.y, p.m * p.n, T(0)), true;
  for (std::int64_t i = 0; i < p.m; ++i)
    std::fill_n(p.y + i * p.ldy, p.n, T(0));
  return true;
}

constexpr std::int64_t kTiny = 6;   // most rows, columns and terms
template <class T> bool is_tiny(const MatrixProduct<T>& p) {
  return p.m <= kTiny && p.n <= kTiny && p.k <= kTiny;
}

// Works row by row, so that a compiler uses vectors without changing the order of the terms.
template <class T> void multiply_tiny(const MatrixProduct<T>& p) {
  const std::int64_t a_row = p.a_transposed ? 1 : p.lda, a_term = p.a_transposed ? p.lda : 1,
                     b_term = p.b_transposed ? 1 : p.ldb, b_column = p.b_transposed ? p.ldb : 1;
  for (std::int64_t i = 0; i < p.m; ++i) {
    T sums[kTiny] = {};
    for (std::int64_t l = 0; l < p.k; ++l)
      for (std::int64_t j = 0; j < p.n; ++j)
        sums[j] = detail::multiply_add(p.a[i * a_row + l * a_term], p.b[l * b_term + j * b_column], sums[j]);
    for (std::int64_t j = 0; j < p.n; ++j)   // as BLAS does: the bits of a product, then of a sum
      p.y[i * p.ldy + j] = p.add ? p.y[i * p.ldy + j] + sums[j] : sums[j];
  }
}

// Runs a BLAS call on this thread.
template <class F> void run_blas(F f) {
  struct Entered {   // counts only if no OneBlasThread is alive on this thread
    Entered() { enter(); }
    ~Entered() { leave(); }
  } const here;
  const int before = limit_openmp(1);
  f();
  limit_openmp(before);
}

template <class F, class T> void multiply(F* gemm, const MatrixProduct<T>& p) {
  run_blas([&] {
    const T one(1), add = p.add || set_to_zero(p) ? one : T(0);
    gemm(CblasRowMajor, flag(p.a_transposed), flag(p.b_transposed), narrow(p.m), narrow(p.n), narrow(p.k),
         factor(one), p.a, narrow(p.lda), p.b, narrow(p.ldb), factor(add), p.y, narrow(p.ldy));
  });
}

// The product of a matrix and a vector. The matrix, which is read as stored, is a, or b if a has one row.
template <class F, class T> void multiply_vector(F* gemv, const MatrixProduct<T>& p) {
  const bool by_a = p.n == 1, transposed = by_a ? p.a_transposed : !p.b_transposed;
  const std::int64_t results = by_a ? p.m : p.n, step = by_a ? p.ldy : 1,
                     step_of_x = by_a ? (p.b_transposed ? 1 : p.ldb) : (p.a_transposed ? p.lda : 1);
  if (!p.add)
    for (std::int64_t i = 0; i < results; ++i)
      p.y[i * step] = T(0);
  run_blas([&] {
    gemv(CblasRowMajor, flag(transposed), narrow(transposed ? p.k : results),
         narrow(transposed ? results : p.k), T(1), by_a ? p.a : p.b, narrow(by_a ? p.lda : p.ldb),
         by_a ? p.b : p.a, narrow(step_of_x), T(1), p.y, narrow(step));
  });
}

// Computes simple products without gemm. Returns false if gemm is needed.
template <class F, class T> bool multiply_simple(F* gemv, const MatrixProduct<T>& p) {
  if (is_tiny(p)) return multiply_tiny(p), true;
  if (p.m > 1 && p.n > 1) return false;
  multiply_vector(gemv, p);
  return true;
}

}   // namespace

bool has_avx512() {
#ifdef __x86_64__
  static const bool has = __builtin_cpu_supports("avx512f");
  return has;
#else
  return false;
#endif
}

void gemm(const MatrixProduct<float>& p) {
  if (!multiply_simple(cblas_sgemv, p) && !onednn::gemm(p)) multiply(cblas_sgemm, p);
}
void gemm(const MatrixProduct<double>& p) {
  if (!multiply_simple(cblas_dgemv, p)) multiply(cblas_dgemm, p);
}
void gemm(const MatrixProduct<std::complex<float>>& p) { multiply(cblas_cgemm, p); }
void gemm(const MatrixProduct<std::complex<double>>& p) { multiply(cblas_zgemm, p); }

OneBlasThread::OneBlasThread() : of_openmp_((enter(), limit_openmp(1))) {
  if (!by_openmp()) limit_process();
  if ((by_openmp() ? omp_get_max_threads() : openblas_get_num_threads()) == 1) return;
  if (!by_openmp()) unlimit_process();
  leave();
  throw InternalError("blas: OpenBLAS cannot be limited to one thread");
}
OneBlasThread::~OneBlasThread() {
  if (by_openmp())
    limit_openmp(of_openmp_);
  else
    unlimit_process();
  leave();
}

}   // namespace tapedeck::kernels
