// The LU factors of one matrix, for solves and determinants. LAPACK sees the transpose of the row-major
// matrix A: Aᵀ = P L U, that is A = Uᵀ Lᵀ Pᵀ. Read row-major, the factors are the lower triangle Uᵀ and the
// unit upper triangle Lᵀ, and P exchanges columns.
#pragma once
#include <cmath>
#include <limits>

#include "kernels/linalg/lapack.h"
#include "kernels/linalg/matrices.h"

namespace tapedeck::kernels {

template <class T> constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
// NOLINTNEXTLINE(misc-definitions-in-headers): a specialization
template <class T> constexpr std::complex<T> kNan<std::complex<T>> = kNan<T>;

/// The conjugate, and the direction x / |x| of a nonzero number; defined for real numbers as well.
template <class T> T conjugate(const T& x) { return x; }
template <class T> std::complex<T> conjugate(const std::complex<T>& x) { return std::conj(x); }
template <class T> T direction(const T& x) { return std::isnan(x) ? x : T(x < 0 ? -1 : 1); }
template <class T> std::complex<T> direction(const std::complex<T>& x) { return x / std::abs(x); }

template <class T> struct LuFactors {
  T* a;
  lapack::Int* pivots;
  std::int64_t n;

  // Factors the matrix in a, in place. Returns LAPACK's info, the 1-based index of the first zero pivot, or
  // 0. If the matrix is not finite, all factors are NaN.
  std::int64_t factor() const {
    if (finite(a, n * n)) return lapack::getrf(lapack::narrow(n), lapack::narrow(n), a, pivots);
    std::fill_n(a, n * n, kNan<T>);
    for (std::int64_t i = 0; i < n; ++i)
      pivots[i] = lapack::narrow(i + 1);
    return 0;
  }
  T pivot(std::int64_t i) const { return a[i * n + i]; }
  bool not_finite() const { return pivot(0) != pivot(0); }
  bool odd() const {
    bool result = false;
    for (std::int64_t i = 0; i < n; ++i)
      result ^= pivots[i] != i + 1;
    return result;
  }
  void exchange(T* y, std::int64_t m, std::int64_t i) const {
    const std::int64_t k = pivots[i] - 1;
    if (k != i) std::swap_ranges(y + i * m, y + (i + 1) * m, y + k * m);
  }
  void solve(bool transposed, T* y, std::int64_t m) const {
    if (not_finite()) return void(std::fill_n(y, n * m, kNan<T>));
    const lapack::Int rows = lapack::narrow(n), columns = lapack::narrow(m);
    if (transposed) {
      for (std::int64_t i = 0; i < n; ++i)
        exchange(y, m, i);
      lapack::trsm({.lower = false, .transposed = true, .unit = true}, rows, columns, a, y);
      lapack::trsm({.lower = true, .transposed = true, .unit = false}, rows, columns, a, y);
    } else {
      lapack::trsm({.lower = true, .transposed = false, .unit = false}, rows, columns, a, y);
      lapack::trsm({.lower = false, .transposed = false, .unit = true}, rows, columns, a, y);
      for (std::int64_t i = n; i-- > 0;)
        exchange(y, m, i);
    }
  }
};

}   // namespace tapedeck::kernels
