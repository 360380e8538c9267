// Linear systems, inverses and determinants by LAPACK, each matrix on one thread. Solves factor all matrices
// first, then solve all systems.
#include "kernels/linalg/solve.h"

#include "core/bytes.h"
#include "core/storage.h"
#include "core/visit.h"
#include "kernels/layout/transpose.h"
#include "kernels/linalg/lu_factors.h"

namespace tapedeck::kernels {
namespace {

// Calls f(factors, i, whether a pivot is 0) for each matrix i of x.
template <class T, class F> void with_factors(const Tensor& x, const F& f) {
  const std::int64_t n = extent(x, 1);
  for_each_matrix(matrices(x), n * n * n / 3, [&](std::int64_t i) {
    CachedVector<T> a(elements<T>(x) + i * n * n, elements<T>(x) + (i + 1) * n * n);
    CachedVector<lapack::Int> pivots(static_cast<std::size_t>(n));
    const LuFactors<T> factors{a.data(), pivots.data(), n};
    f(factors, i, n > 0 && factors.factor() != 0);
    return 0;
  });
}

// Writes the symmetric (for complex matrices, Hermitian) part of x to the lower triangle of y, in blocks,
// since one operand is read by columns. The other triangle becomes 0.
template <class T> void symmetric_part(const T* x, std::int64_t n, T* y) {
  constexpr std::int64_t block = 32;
  for (std::int64_t top = 0; top < n; top += block)
    for (std::int64_t left = 0; left <= top; left += block)
      for (std::int64_t i = top; i < std::min(top + block, n); ++i)
        for (std::int64_t j = left; j < std::min(left + block, i + 1); ++j)
          y[i * n + j] = (x[i * n + j] + conjugate(x[j * n + i])) / T(2);
  for (std::int64_t i = 0; i < n; ++i)
    std::fill(y + i * n + i + 1, y + (i + 1) * n, T(0));
}

template <class T> Failure solve_by_factors(const Tensor& a, const Tensor& b, bool transposed, Tensor& y) {
  const std::int64_t n = extent(y, 2), m = extent(y, 1), systems = matrices(a);
  if (a.size() == 0) return {};
  CachedVector<T> factors(elements<T>(a), elements<T>(a) + a.size());
  CachedVector<lapack::Int> pivots(static_cast<std::size_t>(systems * n));
  const auto factors_of = [&](std::int64_t i) {
    return LuFactors<T>{factors.data() + i * n * n, pivots.data() + i * n, n};
  };
  if (const Failure failure =
          for_each_matrix(systems, n * n * n / 3, [&](std::int64_t i) { return factors_of(i).factor(); }))
    return failure;
  if (y.size() == 0) return {};
  return for_each_matrix(matrices(y), n * n * m, [&](std::int64_t i) {
    T* out = elements<T>(y) + i * n * m;
    std::copy_n(elements<T>(b) + matrix_of(b.shape(), y.shape(), i) * n * m, n * m, out);
    factors_of(matrix_of(a.shape(), y.shape(), i)).solve(transposed, out, m);
    return 0;
  });
}

template <class T>
Failure solve_by_triangle(const Tensor& a, const Tensor& b, bool lower, bool transposed, Tensor& y) {
  if (a.size() == 0) return {};
  const std::int64_t n = extent(y, 2), m = extent(y, 1);
  const Failure failure = for_each_matrix(matrices(a), n, [&](std::int64_t i) {
    const T* in = elements<T>(a) + i * n * n;
    for (std::int64_t k = 0; k < n; ++k)
      if (in[k * n + k] == T(0)) return k + 1;
    return std::int64_t{0};
  });
  if (failure || y.size() == 0) return failure;
  return for_each_matrix(matrices(y), n * n * m / 2, [&](std::int64_t i) {
    T* out = elements<T>(y) + i * n * m;
    std::copy_n(elements<T>(b) + matrix_of(b.shape(), y.shape(), i) * n * m, n * m, out);
    lapack::trsm({lower, transposed, false}, lapack::narrow(n), lapack::narrow(m),
                 elements<T>(a) + matrix_of(a.shape(), y.shape(), i) * n * n, out);
    return 0;
  });
}

// The factors L and U of x itself, not of its transpose: LAPACK receives a column-major copy.
template <class T>
void lu_of_rows(const T* x, std::int64_t n, std::int64_t m, T* packed, std::int64_t* permutation) {
  for (std::int64_t i = 0; i < n; ++i)
    permutation[i] = i;
  if (n == 0 || m == 0) return;
  if (!finite(x, n * m)) return void(std::fill_n(packed, n * m, kNan<T>));
  CachedVector<T> columns(static_cast<std::size_t>(n * m));
  CachedVector<lapack::Int> pivots(static_cast<std::size_t>(std::min(n, m)));
  transpose(x, m, columns.data(), n, m, n);
  lapack::getrf(lapack::narrow(n), lapack::narrow(m), columns.data(), pivots.data());
  transpose(columns.data(), n, packed, m, n, m);
  for (std::int64_t i = 0; i < std::min(n, m); ++i)
    std::swap(permutation[i], permutation[pivots[static_cast<std::size_t>(i)] - 1]);
}

}   // namespace

Failure cholesky(const Tensor& x, Tensor& y) {
  if (y.size() == 0) return {};
  const std::int64_t n = extent(x, 1);
  return visit_trainable(x.dtype(), [&](auto one) {
    using T = decltype(one);
    return for_each_matrix(matrices(x), n * n * n / 3, [&](std::int64_t i) -> std::int64_t {
      const T* in = elements<T>(x) + i * n * n;
      T* out = elements<T>(y) + i * n * n;
      if (!finite(in, n * n)) return std::fill_n(out, n * n, kNan<T>), 0;
      symmetric_part(in, n, out);
      return n == 0 ? 0 : lapack::potrf('U', lapack::narrow(n), out);
    });
  });
}

Failure solve(const Tensor& a, const Tensor& b, bool transposed, Tensor& y) {
  return visit_trainable(y.dtype(),
                         [&](auto one) { return solve_by_factors<decltype(one)>(a, b, transposed, y); });
}
Failure triangular_solve(const Tensor& a, const Tensor& b, bool lower, bool transposed, Tensor& y) {
  return visit_trainable(
      y.dtype(), [&](auto one) { return solve_by_triangle<decltype(one)>(a, b, lower, transposed, y); });
}

Failure inv(const Tensor& x, Tensor& y) {
  const std::int64_t n = extent(x, 1);
  if (y.size() == 0) return {};
  return visit_trainable(x.dtype(), [&](auto one) {
    using T = decltype(one);
    std::copy_n(elements<T>(x), x.size(), elements<T>(y));
    return for_each_matrix(matrices(x), n * n * n, [&](std::int64_t i) -> std::int64_t {
      constexpr std::int64_t block = 64;
      CachedVector<lapack::Int> pivots(static_cast<std::size_t>(n));
      const LuFactors<T> factors{elements<T>(y) + i * n * n, pivots.data(), n};
      if (const std::int64_t info = factors.factor()) return info;
      if (factors.not_finite()) return 0;
      CachedVector<T> work(static_cast<std::size_t>(n * block));
      return lapack::getri(
          lapack::narrow(n), factors.a, pivots.data(), work.data(),
          lapack::narrow(std::min<std::int64_t>(n * block, std::numeric_limits<lapack::Int>::max())));
    });
  });
}

void det(const Tensor& x, Tensor& y) {
  if (y.size() == 0) return;
  visit_trainable(x.dtype(), [&](auto one) {
    using T = decltype(one);
    with_factors<T>(x, [&](const LuFactors<T>& factors, std::int64_t i, bool singular) {
      T product = singular ? T(0) : factors.odd() ? T(-1) : T(1);
      for (std::int64_t k = 0; k < factors.n && !singular; ++k)
        product *= factors.pivot(k);
      elements<T>(y)[i] = product;
    });
  });
}

void slogdet(const Tensor& x, Tensor& sign, Tensor& log_abs) {
  if (sign.size() == 0) return;
  visit_trainable(x.dtype(), [&](auto one) {
    using T = decltype(one);
    using Real = lapack::Magnitude<T>;
    with_factors<T>(x, [&](const LuFactors<T>& factors, std::int64_t i, bool singular) {
      Real total = singular ? -std::numeric_limits<Real>::infinity() : Real(0);
      T s = singular ? T(0) : factors.odd() ? T(-1) : T(1);
      for (std::int64_t k = 0; k < factors.n && !singular; ++k) {
        const T pivot = factors.pivot(k);
        total += std::log(std::abs(pivot));
        s *= direction(pivot);
      }
      elements<T>(sign)[i] = s;
      elements<Real>(log_abs)[i] = total;
    });
  });
}

void lu(const Tensor& x, Tensor& packed, Tensor& permutation) {
  if (packed.size() == 0 && permutation.size() == 0) return;
  const std::int64_t n = extent(x, 2), m = extent(x, 1);
  visit_trainable(x.dtype(), [&](auto one) {
    using T = decltype(one);
    for_each_matrix(matrices(x), n * m * std::min(n, m) / 2, [&](std::int64_t i) {
      lu_of_rows(elements<T>(x) + i * n * m, n, m, elements<T>(packed) + i * n * m,
                 elements<std::int64_t>(permutation) + i * n);
      return 0;
    });
  });
}

}   // namespace tapedeck::kernels
