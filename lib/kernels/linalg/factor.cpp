// QR, eigenvalue and singular value decompositions by LAPACK. LAPACK is column-major and therefore sees the
// transpose of a row-major matrix: x = q r becomes xᵀ = rᵀ qᵀ, an LQ factorization, and x = u s vh becomes xᵀ
// = vhᵀ s uᵀ. So all factors but eigenvectors come out row-major without a transposition. Each matrix is
// factored on one thread.
#include "kernels/linalg/factor.h"

#include <algorithm>
#include <cmath>

#include "core/bytes.h"
#include "core/storage.h"
#include "core/visit.h"
#include "kernels/layout/transpose.h"
#include "kernels/linalg/lu_factors.h"

namespace tapedeck::kernels {
namespace {

using lapack::Int;
using lapack::narrow;
using lapack::with_work;

template <class T> void fill_nan(T* x, std::int64_t n) { std::fill_n(x, n, kNan<T>); }

template <class T> void qr_of(const T* x, std::int64_t m, std::int64_t n, std::int64_t k, T* q, T* r) {
  std::fill_n(r, k * n, T(0));
  if (m == 0) return;
  const std::int64_t least = std::min(m, n);
  if (!finite(x, m * n)) return fill_nan(q, m * k), fill_nan(r, k * n);
  CachedVector<T> a(x, x + m * n), tau(static_cast<std::size_t>(least) + 1);
  if (least > 0)
    with_work<T>([&](T* work, Int size) {
      return lapack::gelqf(narrow(n), narrow(m), a.data(), tau.data(), work, size);
    });
  for (std::int64_t i = 0; i < std::min(k, m); ++i)
    for (std::int64_t j = i; j < n; ++j)
      r[i * n + j] = a[static_cast<std::size_t>(i * n + j)];
  // The reflectors are the first rows of LAPACK's matrix, which are columns here.
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < k; ++j)
      q[i * k + j] = j < least ? a[static_cast<std::size_t>(i * n + j)] : T(0);
  if (k > 0)
    with_work<T>([&](T* work, Int size) {
      return lapack::orglq(narrow(k), narrow(m), narrow(least), q, tau.data(), work, size);
    });
  // For a last column of one element LAPACK makes no reflection if it is real, so its sign stays; if it is
  // complex, LAPACK makes it real and flips the sign.
  if (m > n || tau[static_cast<std::size_t>(m - 1)] == T(0)) return;
  for (std::int64_t j = m - 1; j < n; ++j)
    r[(m - 1) * n + j] = -r[(m - 1) * n + j];
  for (std::int64_t i = 0; i < m; ++i)
    q[i * k + m - 1] = -q[i * k + m - 1];
}

template <class T> void scale(T* x, std::int64_t n, std::int64_t step, T by) {
  if (by != T(1))
    for (std::int64_t i = 0; i < n; ++i)
      x[i * step] *= by;
}

// Normalizes a vector, which is unique up to a factor of magnitude 1: makes the first of its components of
// the largest magnitude positive. Returns the factor.
template <class T> T make_positive(T* x, std::int64_t n, std::int64_t step) {
  T* largest = x;
  for (std::int64_t i = 1; i < n; ++i)
    if (std::abs(x[i * step]) > std::abs(*largest)) largest = x + i * step;
  const lapack::Magnitude<T> size = std::abs(*largest);
  if (!(size > 0)) return T(1);
  const T by = conjugate(direction(*largest));
  scale(x, n, step, by);
  *largest = size;
  return by;
}

// LAPACK reads the lower triangle as the upper triangle of the transpose, which is the conjugate matrix; its
// eigenvectors are the conjugates.
template <class T> Int eigh_of(const T* x, std::int64_t n, lapack::Magnitude<T>* values, T* vectors) {
  CachedVector<T> a(static_cast<std::size_t>(n * n));
  bool usable = true;
  for (std::int64_t i = 0; i < n; ++i) {
    usable &= finite(x + i * n, i + 1);
    std::copy_n(x + i * n, i, a.data() + i * n);
    a[static_cast<std::size_t>(i * n + i)] = std::real(x[i * n + i]);
  }
  if (!usable) return fill_nan(values, n), fill_nan(vectors, n * n), 0;
  lapack::Workspace<T> more = lapack::workspace_for_syevd<T>(n);
  const Int info = with_work<T>(
      [&](T* work, Int size) { return lapack::syevd('U', narrow(n), a.data(), values, work, size, more); });
  for (std::int64_t i = 0; i < n; ++i)
    make_positive(a.data() + i * n, n, 1);
  transpose(a.data(), n, vectors, n, n, n);
  std::transform(vectors, vectors + n * n, vectors, [](const T& e) { return conjugate(e); });
  return info;
}

// u is m × p and vh is q × n.
template <class T> Int svd_of(const T* x, std::int64_t m, std::int64_t n, std::int64_t p, std::int64_t q,
                              T* u, lapack::Magnitude<T>* s, T* vh) {
  const std::int64_t k = std::min(m, n);
  if (k == 0) {   // full factors of an empty matrix are identities
    for (std::int64_t i = 0; i < m * p; ++i)
      u[i] = T(i / p == i % p);
    for (std::int64_t i = 0; i < q * n; ++i)
      vh[i] = T(i / n == i % n);
    return 0;
  }
  if (!finite(x, m * n)) return fill_nan(u, m * p), fill_nan(s, k), fill_nan(vh, q * n), 0;
  CachedVector<T> a(x, x + m * n);
  lapack::Workspace<T> more = lapack::workspace_for_gesdd<T>(n, m);
  const char job = p == m && q == n ? 'A' : 'S';
  const Int info = with_work<T>([&](T* work, Int size) {
    return lapack::gesdd(job, narrow(n), narrow(m), a.data(), s, vh, u, narrow(p), work, size, more);
  });
  for (std::int64_t i = 0; i < p; ++i) {
    const T by = make_positive(u + i, m, p);
    if (i < k) scale(vh + i * n, n, 1, conjugate(by));
  }
  for (std::int64_t i = k; i < q; ++i)
    make_positive(vh + i * n, n, 1);
  return info;
}

}   // namespace

void qr(const Tensor& x, Tensor& q, Tensor& r) {
  if (q.size() == 0 && r.size() == 0) return;
  const std::int64_t m = extent(x, 2), n = extent(x, 1), k = extent(q, 1);
  visit_trainable(x.dtype(), [&](auto one) {
    using T = decltype(one);
    for_each_matrix(matrices(x), 2 * m * n * k, [&](std::int64_t i) {
      qr_of(elements<T>(x) + i * m * n, m, n, k, elements<T>(q) + i * m * k, elements<T>(r) + i * k * n);
      return 0;
    });
  });
}

Failure eigh(const Tensor& x, Tensor& values, Tensor& vectors) {
  const std::int64_t n = extent(x, 1);
  if (values.size() == 0) return {};
  return visit_trainable(x.dtype(), [&](auto one) {
    using T = decltype(one);
    return for_each_matrix(matrices(x), 9 * n * n * n, [&](std::int64_t i) {
      return eigh_of(elements<T>(x) + i * n * n, n, elements<lapack::Magnitude<T>>(values) + i * n,
                     elements<T>(vectors) + i * n * n);
    });
  });
}

Failure svd(const Tensor& x, Tensor& u, Tensor& s, Tensor& vh) {
  if (u.size() == 0 && s.size() == 0 && vh.size() == 0) return {};
  const std::int64_t m = extent(x, 2), n = extent(x, 1), k = extent(s, 1), p = extent(u, 1),
                     q = extent(vh, 2);
  return visit_trainable(x.dtype(), [&](auto one) {
    using T = decltype(one);
    return for_each_matrix(matrices(x), 20 * m * n * k, [&](std::int64_t i) {
      return svd_of(elements<T>(x) + i * m * n, m, n, p, q, elements<T>(u) + i * m * p,
                    elements<lapack::Magnitude<T>>(s) + i * k, elements<T>(vh) + i * q * n);
    });
  });
}

Failure pinv(const Tensor& x, double rcond, Tensor& y) {
  const std::int64_t m = extent(x, 2), n = extent(x, 1), k = std::min(m, n);
  if (y.size() == 0) return {};
  return visit_trainable(x.dtype(), [&](auto one) {
    using T = decltype(one);
    return for_each_matrix(matrices(x), 20 * m * n * k, [&](std::int64_t i) {
      CachedVector<T> u(static_cast<std::size_t>(m * k)), vh(static_cast<std::size_t>(k * n));
      CachedVector<lapack::Magnitude<T>> s(static_cast<std::size_t>(k));
      T* out = elements<T>(y) + i * n * m;
      const Int info = svd_of(elements<T>(x) + i * m * n, m, n, k, k, u.data(), s.data(), vh.data());
      const auto least = static_cast<lapack::Magnitude<T>>(rcond) * s[0];
      for (std::int64_t j = 0; j < k; ++j)
        scale(vh.data() + j * n, n, 1,
              T(s[static_cast<std::size_t>(j)] <= least ? 0 : 1 / s[static_cast<std::size_t>(j)]));
      gemm(MatrixProduct<T>{.m = n,
                            .n = m,
                            .k = k,
                            .a = vh.data(),
                            .b = u.data(),
                            .y = out,
                            .a_transposed = true,
                            .b_transposed = true,
                            .lda = n,
                            .ldb = k,
                            .ldy = m});
      std::transform(out, out + n * m, out, [](const T& e) { return conjugate(e); });
      return info;
    });
  });
}

}   // namespace tapedeck::kernels
