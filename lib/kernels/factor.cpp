// Orthogonal factorisations by LAPACK. What is row-major here is the transpose there: x = q r is xᵀ = rᵀ qᵀ, an LQ factorisation,
// and x = u s vh is xᵀ = vhᵀ s uᵀ, so that all factors but eigenvectors come out as they are wanted.
#include "kernels/factor.h"

#include <cmath>
#include <limits>

#include "base/visit.h"
#include "kernels/lapack.h"
#include "kernels/transpose.h"
#include "tensor/storage.h"

namespace tapedeck::kernels {
namespace {

using lapack::Int;
using lapack::narrow;
using lapack::with_work;

template <class T> void fill_nan(T* x, std::int64_t n) { std::fill_n(x, n, std::numeric_limits<T>::quiet_NaN()); }

template <class T> void qr_of(const T* x, std::int64_t m, std::int64_t n, std::int64_t k, T* q, T* r) {
  std::fill_n(r, k * n, T(0));
  if (m == 0) return;
  const std::int64_t least = std::min(m, n);
  if (!finite(x, m * n)) return fill_nan(q, m * k), fill_nan(r, k * n);
  CachedVector<T> a(x, x + m * n), tau(static_cast<std::size_t>(least) + 1);
  if (least > 0) with_work<T>([&](T* work, Int size) { return lapack::gelqf(narrow(n), narrow(m), a.data(), tau.data(), work, size); });
  for (std::int64_t i = 0; i < std::min(k, m); ++i)
    for (std::int64_t j = i; j < n; ++j) r[i * n + j] = a[static_cast<std::size_t>(i * n + j)];
  // The reflections are the first rows of LAPACK's matrix, which are columns here; q has as many columns as are wanted.
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < k; ++j) q[i * k + j] = j < least ? a[static_cast<std::size_t>(i * n + j)] : T(0);
  if (k > 0) with_work<T>([&](T* work, Int size) { return lapack::orglq(narrow(k), narrow(m), narrow(least), q, tau.data(), work, size); });
}

// Eigenvectors are given up to a sign: of the components of the largest magnitude the first is made positive.
template <class T> T sign_of(const T* x, std::int64_t n, std::int64_t step) {
  T largest = 0;
  for (std::int64_t i = 0; i < n; ++i) if (std::abs(x[i * step]) > std::abs(largest)) largest = x[i * step];
  return largest < 0 ? T(-1) : T(1);
}
template <class T> void scale(T* x, std::int64_t n, std::int64_t step, T by) {
  if (by != 1) for (std::int64_t i = 0; i < n; ++i) x[i * step] *= by;
}

template <class T> Int eigh_of(const T* x, std::int64_t n, T* values, T* vectors) {
  CachedVector<T> a(static_cast<std::size_t>(n * n));
  bool usable = true;
  for (std::int64_t i = 0; i < n; ++i) {
    usable &= finite(x + i * n, i + 1);
    std::copy_n(x + i * n, i + 1, a.data() + i * n);
  }
  if (!usable) return fill_nan(values, n), fill_nan(vectors, n * n), 0;
  Int best = 0;
  T unused;
  lapack::syevd('U', narrow(n), a.data(), values, &unused, -1, &best, -1);
  CachedVector<Int> more(static_cast<std::size_t>(best));
  const Int info = with_work<T>([&](T* work, Int size) { return lapack::syevd('U', narrow(n), a.data(), values, work, size, more.data(), size < 0 ? -1 : best); });
  for (std::int64_t i = 0; i < n; ++i) scale(a.data() + i * n, n, 1, sign_of(a.data() + i * n, n, 1));
  transpose(a.data(), n, vectors, n, n, n);
  return info;
}

// u is m × p and vh is q × n.
template <class T> Int svd_of(const T* x, std::int64_t m, std::int64_t n, std::int64_t p, std::int64_t q, T* u, T* s, T* vh) {
  const std::int64_t k = std::min(m, n);
  if (k == 0) {   // full factors of nothing are identities
    for (std::int64_t i = 0; i < m * p; ++i) u[i] = i / p == i % p;
    for (std::int64_t i = 0; i < q * n; ++i) vh[i] = i / n == i % n;
    return 0;
  }
  if (!finite(x, m * n)) return fill_nan(u, m * p), fill_nan(s, k), fill_nan(vh, q * n), 0;
  CachedVector<T> a(x, x + m * n);
  CachedVector<Int> more(static_cast<std::size_t>(8 * k));
  const char job = p == m && q == n ? 'A' : 'S';
  const Int info = with_work<T>([&](T* work, Int size) { return lapack::gesdd(job, narrow(n), narrow(m), a.data(), s, vh, u, narrow(p), work, size, more.data()); });
  for (std::int64_t i = 0; i < p; ++i) {
    const T sign = sign_of(u + i, m, p);
    scale(u + i, m, p, sign);
    if (i < k) scale(vh + i * n, n, 1, sign);
  }
  for (std::int64_t i = k; i < q; ++i) scale(vh + i * n, n, 1, sign_of(vh + i * n, n, 1));
  return info;
}

}  // namespace

void qr(const Tensor& x, Tensor& q, Tensor& r) {
  const std::int64_t m = extent(x, 2), n = extent(x, 1), k = extent(q, 1);
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    for_each_matrix(matrices(x), 2 * m * n * k, [&](std::int64_t i) {
      qr_of(elements<T>(x) + i * m * n, m, n, k, elements<T>(q) + i * m * k, elements<T>(r) + i * k * n);
      return 0;
    });
  });
}

Failure eigh(const Tensor& x, Tensor& values, Tensor& vectors) {
  const std::int64_t n = extent(x, 1);
  if (n == 0) return {};
  return visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    return for_each_matrix(matrices(x), 9 * n * n * n, [&](std::int64_t i) {
      return eigh_of(elements<T>(x) + i * n * n, n, elements<T>(values) + i * n, elements<T>(vectors) + i * n * n);
    });
  });
}

Failure svd(const Tensor& x, Tensor& u, Tensor& s, Tensor& vh) {
  const std::int64_t m = extent(x, 2), n = extent(x, 1), k = extent(s, 1), p = extent(u, 1), q = extent(vh, 2);
  return visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    return for_each_matrix(matrices(x), 20 * m * n * k, [&](std::int64_t i) {
      return svd_of(elements<T>(x) + i * m * n, m, n, p, q, elements<T>(u) + i * m * p, elements<T>(s) + i * k, elements<T>(vh) + i * q * n);
    });
  });
}

Failure pinv(const Tensor& x, double rcond, Tensor& y) {
  const std::int64_t m = extent(x, 2), n = extent(x, 1), k = std::min(m, n);
  if (k == 0) return {};
  return visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    return for_each_matrix(matrices(x), 20 * m * n * k, [&](std::int64_t i) {
      CachedVector<T> u(static_cast<std::size_t>(m * k)), s(static_cast<std::size_t>(k)), vh(static_cast<std::size_t>(k * n));
      const Int info = svd_of(elements<T>(x) + i * m * n, m, n, k, k, u.data(), s.data(), vh.data());
      const T least = static_cast<T>(rcond) * s[0];
      for (std::int64_t j = 0; j < k; ++j) scale(vh.data() + j * n, n, 1, s[static_cast<std::size_t>(j)] <= least ? T(0) : 1 / s[static_cast<std::size_t>(j)]);
      gemm(Product<T>{.m = n, .n = m, .k = k, .a = vh.data(), .b = u.data(), .y = elements<T>(y) + i * n * m, .a_transposed = true, .b_transposed = true, .lda = n, .ldb = k, .ldy = m});
      return info;
    });
  });
}

}  // namespace tapedeck::kernels
