// Solves and products with band matrices, each matrix on one thread. Inner loops run along rows of the
// right-hand sides.
#include "kernels/linalg/banded.h"

#include <cmath>

#include "core/bytes.h"
#include "core/storage.h"
#include "core/visit.h"

namespace tapedeck::kernels {
namespace {

// y += by · x
template <class T> void add_row(T* y, T by, const T* x, std::int64_t m) {
  for (std::int64_t c = 0; c < m; ++c)
    y[c] += by * x[c];
}

// Substitution in place: y holds b on entry. The coefficient that couples row j with another row is stored in
// the band (the row of `bands`) at their distance, in column j or, if the matrix is read transposed, in the
// other row's column. Returns the 1-based index of the first zero pivot, or 0.
template <class T> std::int64_t solve_bands(const T* bands, std::int64_t k, std::int64_t n, bool lower,
                                            bool transposed, T* y, std::int64_t m) {
  const bool down = lower != transposed;
  const auto row_of = [&](std::int64_t distance) {
    return bands + (lower ? distance : k - 1 - distance) * n;
  };
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t j = down ? step : n - 1 - step;
    const T pivot = row_of(0)[j];
    if (pivot == T(0)) return j + 1;
    for (std::int64_t d = 1; d < std::min(k, step + 1); ++d) {
      const std::int64_t other = down ? j - d : j + d;
      add_row(y + j * m, -row_of(d)[transposed ? other : j], y + other * m, m);
    }
    for (std::int64_t c = 0; c < m; ++c)
      y[j * m + c] /= pivot;
  }
  return 0;
}

// Gaussian elimination with partial pivoting between neighbouring rows, which may fill a second
// superdiagonal. In place: y holds b on entry. Returns as above.
template <class T> std::int64_t solve_tridiagonal(const T* diagonals, std::int64_t n, T* y, std::int64_t m) {
  CachedVector<T> above(diagonals, diagonals + n), on(diagonals + n, diagonals + 2 * n),
      second(static_cast<std::size_t>(n));
  const T* below = diagonals + 2 * n;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    T next = below[i + 1];
    if (std::abs(on[at(i)]) < std::abs(next)) {
      std::swap(on[at(i)], next);
      std::swap(above[at(i)], on[at(i + 1)]);
      std::swap(second[at(i)], above[at(i + 1)]);
      std::swap_ranges(y + i * m, y + (i + 1) * m, y + (i + 1) * m);
    }
    if (on[at(i)] == T(0)) return i + 1;
    const T factor = -next / on[at(i)];
    on[at(i + 1)] += factor * above[at(i)];
    above[at(i + 1)] += factor * second[at(i)];
    add_row(y + (i + 1) * m, factor, y + i * m, m);
  }
  for (std::int64_t i = n; i-- > 0;) {
    if (on[at(i)] == T(0)) return i + 1;
    if (i + 1 < n) add_row(y + i * m, -above[at(i)], y + (i + 1) * m, m);
    if (i + 2 < n) add_row(y + i * m, -second[at(i)], y + (i + 2) * m, m);
    for (std::int64_t c = 0; c < m; ++c)
      y[i * m + c] /= on[at(i)];
  }
  return 0;
}

// Calls f(matrix of a, out) for each matrix of y, with out initialized to the matrix of b.
template <class T, class F> Failure solve_each(const Tensor& a, const Tensor& b, Tensor& y, const F& f) {
  if (y.size() == 0) return {};
  const std::int64_t n = extent(y, 2), m = extent(y, 1), size = extent(a, 2) * n;
  return for_each_matrix(matrices(y), size * m, [&](std::int64_t i) {
    T* out = elements<T>(y) + i * n * m;
    std::copy_n(elements<T>(b) + matrix_of(b.shape(), y.shape(), i) * n * m, n * m, out);
    return f(elements<T>(a) + matrix_of(a.shape(), y.shape(), i) * size, out);
  });
}

}   // namespace

Failure banded_triangular_solve(const Tensor& bands, const Tensor& b, bool lower, bool transposed,
                                Tensor& y) {
  return visit_trainable(y.dtype(), [&](auto one) {
    using T = decltype(one);
    return solve_each<T>(bands, b, y, [&](const T* a, T* out) {
      return solve_bands(a, extent(bands, 2), extent(y, 2), lower, transposed, out, extent(y, 1));
    });
  });
}

Failure tridiagonal_solve(const Tensor& diagonals, const Tensor& b, Tensor& y) {
  return visit_trainable(y.dtype(), [&](auto one) {
    using T = decltype(one);
    return solve_each<T>(diagonals, b, y, [&](const T* a, T* out) {
      return solve_tridiagonal(a, extent(y, 2), out, extent(y, 1));
    });
  });
}

void tridiagonal_matmul(const Tensor& diagonals, const Tensor& x, Tensor& y) {
  if (y.size() == 0) return;
  const std::int64_t n = extent(y, 2), m = extent(y, 1);
  visit_trainable(y.dtype(), [&](auto one) {
    using T = decltype(one);
    for_each_matrix(matrices(y), 3 * n * m, [&](std::int64_t i) {
      const T* a = elements<T>(diagonals) + matrix_of(diagonals.shape(), y.shape(), i) * 3 * n;
      const T* in = elements<T>(x) + matrix_of(x.shape(), y.shape(), i) * n * m;
      T* out = elements<T>(y) + i * n * m;
      for (std::int64_t j = 0; j < n; ++j, in += m, out += m) {
        for (std::int64_t c = 0; c < m; ++c)
          out[c] = a[n + j] * in[c];
        if (j + 1 < n) add_row(out, a[j], in + m, m);
        if (j > 0) add_row(out, a[2 * n + j], in - m, m);
      }
      return 0;
    });
  });
}

}   // namespace tapedeck::kernels
