// Eigenvalues and eigenvectors of general matrices by LAPACK's geev, which is column-major; each matrix on
// one thread.
#include "kernels/linalg/eig.h"

#include "core/bytes.h"
#include "core/storage.h"
#include "core/visit.h"
#include "kernels/layout/transpose.h"
#include "kernels/linalg/lu_factors.h"

namespace tapedeck::kernels {
namespace {

using lapack::Int;
using lapack::narrow;

// Values and vectors of a column-major matrix a, which is overwritten.
template <class T>
Int solve_columns(std::complex<T>* a, std::int64_t n, std::complex<T>* values, std::complex<T>* vectors) {
  CachedVector<T> more(static_cast<std::size_t>(2 * n));
  return lapack::with_work<std::complex<T>>([&](std::complex<T>* work, Int size) {
    return lapack::geev(narrow(n), a, values, vectors, work, size, more.data());
  });
}
template <class T>
Int solve_columns(T* a, std::int64_t n, std::complex<T>* values, std::complex<T>* vectors) {
  CachedVector<T> re(static_cast<std::size_t>(n)), im(static_cast<std::size_t>(n)),
      packed(static_cast<std::size_t>(n * n));
  const Int info = lapack::with_work<T>([&](T* work, Int size) {
    return lapack::geev(narrow(n), a, re.data(), im.data(), packed.data(), work, size);
  });
  for (std::int64_t j = 0; j < n; ++j) {
    const T imaginary = im[static_cast<std::size_t>(j)];
    values[j] = {re[static_cast<std::size_t>(j)], imaginary};
    const T* first = packed.data() + (imaginary < 0 ? j - 1 : j) * n;
    const T side = imaginary > 0 ? T(1) : imaginary < 0 ? T(-1) : T(0);
    for (std::int64_t i = 0; i < n; ++i)
      vectors[j * n + i] = {first[i], side == 0 ? T(0) : side * first[n + i]};
  }
  return info;
}

template <class T, class Z> Int eig_of(const T* x, std::int64_t n, Z* values, Z* vectors) {
  if (!finite(x, n * n)) return std::fill_n(values, n, kNan<Z>), std::fill_n(vectors, n * n, kNan<Z>), 0;
  CachedVector<T> a(static_cast<std::size_t>(n * n));
  transpose(x, n, a.data(), n, n, n);
  CachedVector<Z> columns(static_cast<std::size_t>(n * n));
  const Int info = solve_columns(a.data(), n, values, columns.data());
  for (std::int64_t j = 0; j < n; ++j) {
    const Z* column = columns.data() + j * n;
    const Z* largest = std::max_element(column, column + n,
                                        [](const Z& p, const Z& q) { return std::abs(p) < std::abs(q); });
    for (std::int64_t i = 0; i < n; ++i)
      vectors[i * n + j] = column + i == largest ? Z(1) : column[i] / *largest;
  }
  return info;
}

}   // namespace

Failure eig(const Tensor& x, Tensor& values, Tensor& vectors) {
  const std::int64_t n = extent(x, 1);
  if (values.size() == 0) return {};
  return visit_trainable(x.dtype(), [&]<class T>(T) {
    using Z = std::conditional_t<std::is_floating_point_v<T>,
                                 std::complex<typename std::complex<T>::value_type>, T>;
    return for_each_matrix(matrices(x), 25 * n * n * n, [&](std::int64_t i) -> std::int64_t {
      return eig_of(elements<T>(x) + i * n * n, n, elements<Z>(values) + i * n,
                    elements<Z>(vectors) + i * n * n);
    });
  });
}

}   // namespace tapedeck::kernels
