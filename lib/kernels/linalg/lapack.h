// LAPACK functions and triangular solves, overloaded for all dtypes. LAPACK is column-major, so it operates
// on the transpose of a row-major matrix: its upper triangle is the lower one of the matrix, and its LQ
// factorization is QR.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "core/storage.h"

#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <cblas.h>
#include <lapack.h>

namespace tapedeck::kernels::lapack {

using Int = lapack_int;
inline Int narrow(std::int64_t n) { return static_cast<Int>(n); }

/// Calls a LAPACK function and returns its info, 0 for success. LAPACK expects numbers and letters by
/// address, and the lengths of the letters after all other arguments. Not inlined, since such calls are
/// large.
template <class F, class... Args> [[gnu::noinline]] Int info_of(F f, Args... args) {
  constexpr int kLetters = (0 + ... + std::is_same_v<Args, char>);
  const auto address = []<class T>(const T& x) {
    if constexpr (std::is_arithmetic_v<T>)
      return &x;
    else
      return x;
  };
  Int info = 0;
  if constexpr (kLetters == 0) f(address(args)..., &info);
  if constexpr (kLetters == 1) f(address(args)..., &info, 1);
  if constexpr (kLetters == 2) f(address(args)..., &info, 1, 1);
  return info;
}

/// Calls f(work, size) twice: first with size -1, for which LAPACK returns the best size in work[0].
template <class T, class F> Int with_work(const F& f) {
  T best = 0;
  f(&best, Int{-1});
  const auto size = std::max<std::int64_t>(
      static_cast<std::int64_t>(std::nextafter(std::real(best), std::numeric_limits<float>::infinity())), 1);
  CachedVector<T> work(static_cast<std::size_t>(size));
  return f(work.data(), narrow(size));
}

inline Int potrf(char triangle, Int n, float* a) { return info_of(LAPACK_spotrf_base, triangle, n, a, n); }
inline Int potrf(char triangle, Int n, double* a) { return info_of(LAPACK_dpotrf_base, triangle, n, a, n); }
inline Int potrf(char triangle, Int n, std::complex<float>* a) {
  return info_of(LAPACK_cpotrf_base, triangle, n, a, n);
}
inline Int potrf(char triangle, Int n, std::complex<double>* a) {
  return info_of(LAPACK_zpotrf_base, triangle, n, a, n);
}
inline Int getrf(Int n, Int m, float* a, Int* pivots) { return info_of(LAPACK_sgetrf, n, m, a, n, pivots); }
inline Int getrf(Int n, Int m, double* a, Int* pivots) { return info_of(LAPACK_dgetrf, n, m, a, n, pivots); }
inline Int getrf(Int n, Int m, std::complex<float>* a, Int* pivots) {
  return info_of(LAPACK_cgetrf, n, m, a, n, pivots);
}
inline Int getrf(Int n, Int m, std::complex<double>* a, Int* pivots) {
  return info_of(LAPACK_zgetrf, n, m, a, n, pivots);
}
inline Int getri(Int n, float* a, const Int* pivots, float* work, Int size) {
  return info_of(LAPACK_sgetri, n, a, n, pivots, work, size);
}
inline Int getri(Int n, double* a, const Int* pivots, double* work, Int size) {
  return info_of(LAPACK_dgetri, n, a, n, pivots, work, size);
}
inline Int getri(Int n, std::complex<float>* a, const Int* pivots, std::complex<float>* work, Int size) {
  return info_of(LAPACK_cgetri, n, a, n, pivots, work, size);
}
inline Int getri(Int n, std::complex<double>* a, const Int* pivots, std::complex<double>* work, Int size) {
  return info_of(LAPACK_zgetri, n, a, n, pivots, work, size);
}

/// The following functions accept a workspace and its size; size -1 queries the best size, which LAPACK
/// returns in work[0].
inline Int gelqf(Int n, Int m, float* a, float* tau, float* work, Int size) {
  return info_of(LAPACK_sgelqf, n, m, a, n, tau, work, size);
}
inline Int gelqf(Int n, Int m, double* a, double* tau, double* work, Int size) {
  return info_of(LAPACK_dgelqf, n, m, a, n, tau, work, size);
}
inline Int gelqf(Int n, Int m, std::complex<float>* a, std::complex<float>* tau, std::complex<float>* work,
                 Int size) {
  return info_of(LAPACK_cgelqf, n, m, a, n, tau, work, size);
}
inline Int gelqf(Int n, Int m, std::complex<double>* a, std::complex<double>* tau, std::complex<double>* work,
                 Int size) {
  return info_of(LAPACK_zgelqf, n, m, a, n, tau, work, size);
}
inline Int orglq(Int n, Int m, Int k, float* a, const float* tau, float* work, Int size) {
  return info_of(LAPACK_sorglq, n, m, k, a, n, tau, work, size);
}
inline Int orglq(Int n, Int m, Int k, double* a, const double* tau, double* work, Int size) {
  return info_of(LAPACK_dorglq, n, m, k, a, n, tau, work, size);
}
inline Int orglq(Int n, Int m, Int k, std::complex<float>* a, const std::complex<float>* tau,
                 std::complex<float>* work, Int size) {
  return info_of(LAPACK_cunglq, n, m, k, a, n, tau, work, size);
}
inline Int orglq(Int n, Int m, Int k, std::complex<double>* a, const std::complex<double>* tau,
                 std::complex<double>* work, Int size) {
  return info_of(LAPACK_zunglq, n, m, k, a, n, tau, work, size);
}

/// The real type of T: float for f32 and c64, double for f64 and c128.
template <class T> using Magnitude = decltype(std::abs(T()));
/// Further workspace: real numbers, which only complex functions need, and integers.
template <class T> struct Workspace {
  CachedVector<Magnitude<T>> reals;
  CachedVector<Int> integers;

  Workspace(std::int64_t for_reals, std::int64_t for_integers)
      : reals(static_cast<std::size_t>(std::is_floating_point_v<T> ? 0 : for_reals)),
        integers(static_cast<std::size_t>(for_integers)) {}
  Int count() const { return narrow(static_cast<std::int64_t>(reals.size())); }
};
/// The workspaces for eigenvectors of n × n matrices, and for singular vectors of n × m matrices.
template <class T> Workspace<T> workspace_for_syevd(std::int64_t n) {
  return {1 + 5 * n + 2 * n * n, 3 + 5 * n};
}
template <class T> Workspace<T> workspace_for_gesdd(std::int64_t n, std::int64_t m) {
  const std::int64_t k = std::min(n, m);
  return {k * std::max(5 * k + 5, 2 * std::max(n, m) + 2 * k + 1), 8 * k};
}

inline Int syevd(char triangle, Int n, float* a, float* w, float* work, Int size, Workspace<float>& more) {
  return info_of(LAPACK_ssyevd_base, 'V', triangle, n, a, n, w, work, size, more.integers.data(), 3 + 5 * n);
}
inline Int syevd(char triangle, Int n, double* a, double* w, double* work, Int size,
                 Workspace<double>& more) {
  return info_of(LAPACK_dsyevd_base, 'V', triangle, n, a, n, w, work, size, more.integers.data(), 3 + 5 * n);
}
inline Int syevd(char triangle, Int n, std::complex<float>* a, float* w, std::complex<float>* work, Int size,
                 Workspace<std::complex<float>>& more) {
  return info_of(LAPACK_cheevd_base, 'V', triangle, n, a, n, w, work, size, more.reals.data(), more.count(),
                 more.integers.data(), 3 + 5 * n);
}
inline Int syevd(char triangle, Int n, std::complex<double>* a, double* w, std::complex<double>* work,
                 Int size, Workspace<std::complex<double>>& more) {
  return info_of(LAPACK_zheevd_base, 'V', triangle, n, a, n, w, work, size, more.reals.data(), more.count(),
                 more.integers.data(), 3 + 5 * n);
}
inline Int gesdd(char job, Int n, Int m, float* a, float* s, float* u, float* vt, Int rows_of_vt, float* work,
                 Int size, Workspace<float>& more) {
  return info_of(LAPACK_sgesdd_base, job, n, m, a, n, s, u, n, vt, rows_of_vt, work, size,
                 more.integers.data());
}
inline Int gesdd(char job, Int n, Int m, double* a, double* s, double* u, double* vt, Int rows_of_vt,
                 double* work, Int size, Workspace<double>& more) {
  return info_of(LAPACK_dgesdd_base, job, n, m, a, n, s, u, n, vt, rows_of_vt, work, size,
                 more.integers.data());
}
inline Int gesdd(char job, Int n, Int m, std::complex<float>* a, float* s, std::complex<float>* u,
                 std::complex<float>* vt, Int rows_of_vt, std::complex<float>* work, Int size,
                 Workspace<std::complex<float>>& more) {
  return info_of(LAPACK_cgesdd_base, job, n, m, a, n, s, u, n, vt, rows_of_vt, work, size, more.reals.data(),
                 more.integers.data());
}
inline Int gesdd(char job, Int n, Int m, std::complex<double>* a, double* s, std::complex<double>* u,
                 std::complex<double>* vt, Int rows_of_vt, std::complex<double>* work, Int size,
                 Workspace<std::complex<double>>& more) {
  return info_of(LAPACK_zgesdd_base, job, n, m, a, n, s, u, n, vt, rows_of_vt, work, size, more.reals.data(),
                 more.integers.data());
}

/// Eigenvalues and right eigenvectors of a. For real matrices LAPACK packs vectors: of two conjugate
/// eigenvalues the first has a positive imaginary part, and their vector is stored as two columns, its real
/// and imaginary parts.
inline Int geev(Int n, float* a, float* re, float* im, float* v, float* work, Int size) {
  return info_of(LAPACK_sgeev_base, 'N', 'V', n, a, n, re, im, nullptr, 1, v, n, work, size);
}
inline Int geev(Int n, double* a, double* re, double* im, double* v, double* work, Int size) {
  return info_of(LAPACK_dgeev_base, 'N', 'V', n, a, n, re, im, nullptr, 1, v, n, work, size);
}
inline Int geev(Int n, std::complex<float>* a, std::complex<float>* w, std::complex<float>* v,
                std::complex<float>* work, Int size, float* more) {
  return info_of(LAPACK_cgeev_base, 'N', 'V', n, a, n, w, nullptr, 1, v, n, work, size, more);
}
inline Int geev(Int n, std::complex<double>* a, std::complex<double>* w, std::complex<double>* v,
                std::complex<double>* work, Int size, double* more) {
  return info_of(LAPACK_zgeev_base, 'N', 'V', n, a, n, w, nullptr, 1, v, n, work, size, more);
}

/// Overwrites b, row-major n × m, with the solution of a y = b or aᵀ y = b, where a is triangular.
struct Triangle {
  bool lower, transposed, unit;
};
inline void trsm(Triangle t, Int n, Int m, const float* a, float* b) {
  cblas_strsm(CblasRowMajor, CblasLeft, t.lower ? CblasLower : CblasUpper,
              t.transposed ? CblasTrans : CblasNoTrans, t.unit ? CblasUnit : CblasNonUnit, n, m, 1, a, n, b,
              m);
}
inline void trsm(Triangle t, Int n, Int m, const double* a, double* b) {
  cblas_dtrsm(CblasRowMajor, CblasLeft, t.lower ? CblasLower : CblasUpper,
              t.transposed ? CblasTrans : CblasNoTrans, t.unit ? CblasUnit : CblasNonUnit, n, m, 1, a, n, b,
              m);
}
inline void trsm(Triangle t, Int n, Int m, const std::complex<float>* a, std::complex<float>* b) {
  const std::complex<float> one = 1;
  cblas_ctrsm(CblasRowMajor, CblasLeft, t.lower ? CblasLower : CblasUpper,
              t.transposed ? CblasTrans : CblasNoTrans, t.unit ? CblasUnit : CblasNonUnit, n, m, &one, a, n,
              b, m);
}
inline void trsm(Triangle t, Int n, Int m, const std::complex<double>* a, std::complex<double>* b) {
  const std::complex<double> one = 1;
  cblas_ztrsm(CblasRowMajor, CblasLeft, t.lower ? CblasLower : CblasUpper,
              t.transposed ? CblasTrans : CblasNoTrans, t.unit ? CblasUnit : CblasNonUnit, n, m, &one, a, n,
              b, m);
}

}   // namespace tapedeck::kernels::lapack
