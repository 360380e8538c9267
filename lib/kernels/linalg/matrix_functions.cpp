// Functions of square matrices, each matrix on one thread. The functions commute with transposition, so
// LAPACK's column-major order makes no difference.
#include "kernels/linalg/matrix_functions.h"

#include <algorithm>

#include "core/bytes.h"
#include "core/storage.h"
#include "core/visit.h"
#include "kernels/linalg/lu_factors.h"

namespace tapedeck::kernels {
namespace {

using lapack::Int;
using lapack::narrow;
using Complex128 = std::complex<double>;

template <class T> void product(const T* a, const T* b, std::int64_t n, T* y) {
  gemm(MatrixProduct<T>{.m = n, .n = n, .k = n, .a = a, .b = b, .y = y, .lda = n, .ldb = n, .ldy = n});
}

// Higham 2005, "The scaling and squaring method for the matrix exponential revisited", algorithm 2.3, with
// the Padé approximant of degree 13 only: its coefficients by powers of x, and kTheta, the largest norm that
// it is used for.
constexpr double kPade[] = {64764752532480000.0,
                            32382376266240000.0,
                            7771770303897600.0,
                            1187353796428800.0,
                            129060195264000.0,
                            10559470521600.0,
                            670442572800.0,
                            33522128640.0,
                            1323241920.0,
                            40840800.0,
                            960960.0,
                            16380.0,
                            182.0,
                            1.0};
constexpr double kTheta = 5.371920351148152;

// How often x must be halved for its norm to be at most kTheta.
template <class T> int halvings_of(const T* x, std::int64_t n) {
  double norm = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double row = 0;
    for (std::int64_t j = 0; j < n; ++j)
      row += static_cast<double>(std::abs(x[i * n + j]));
    norm = std::max(norm, row);
  }
  // A sum of finite numbers may be infinite.
  return norm > kTheta ? static_cast<int>(std::ceil(std::min(std::log2(norm / kTheta), 1100.0))) : 0;
}

template <class T> void exponential_of(const T* x, std::int64_t n, T* y) {
  const std::int64_t size = n * n;
  if (!finite(x, size)) return void(std::fill_n(y, size, kNan<T>));
  const int halvings = halvings_of(x, n);
  CachedVector<T> memory(static_cast<std::size_t>(7 * size));
  T *a = memory.data(), *a2 = a + size, *a4 = a2 + size, *a6 = a4 + size, *odd = a6 + size,
    *even = odd + size, *sum = even + size;
  using Real = decltype(std::abs(T()));
  const auto scale = [&](const Real& e) {
    return static_cast<Real>(std::ldexp(static_cast<double>(e), -halvings));
  };
  for (std::int64_t i = 0; i < size; ++i) {
    if constexpr (std::is_same_v<T, Real>)
      a[i] = scale(x[i]);
    else
      a[i] = {scale(x[i].real()), scale(x[i].imag())};
  }
  product(a, a, n, a2);
  product(a2, a2, n, a4);
  product(a4, a2, n, a6);
  // out = c[6] a6 + c[4] a4 + c[2] a2, plus c[0] on the diagonal if with_unit, with the coefficients from
  // `first` on; plus out if `add`.
  const auto combine = [&](int first, bool with_unit, T* out, bool add) {
    const auto c = [&](int k) { return static_cast<Real>(kPade[first + k] / kPade[0]); };
    for (std::int64_t i = 0; i < size; ++i)
      out[i] = (add ? out[i] : T(0)) + c(6) * a6[i] + c(4) * a4[i] + c(2) * a2[i];
    if (with_unit)
      for (std::int64_t i = 0; i < n; ++i)
        out[i * n + i] += c(0);
  };
  combine(7, false, sum, false);
  product(a6, sum, n, even);
  combine(1, true, even, true);
  product(a, even, n, odd);
  combine(6, false, sum, false);
  product(a6, sum, n, even);
  combine(0, true, even, true);
  for (std::int64_t i = 0; i < size; ++i) {
    y[i] = even[i] + odd[i];
    a[i] = even[i] - odd[i];
  }
  CachedVector<Int> pivots(static_cast<std::size_t>(n));
  const LuFactors<T> factors{a, pivots.data(), n};
  factors.factor();
  factors.solve(false, y, n);
  for (int i = 0; i < halvings; ++i) {
    std::copy_n(y, size, a);
    product(a, a, n, y);
  }
}

// Schur decomposition a = z t zᴴ, where the upper triangular t overwrites a. Returns whether LAPACK's
// iteration converges.
bool schur(std::int64_t n, Complex128* a, Complex128* z) {
  CachedVector<Complex128> w(static_cast<std::size_t>(n)), work(static_cast<std::size_t>(8 * n));
  CachedVector<double> real_work(static_cast<std::size_t>(n));
  Int unused = 0;
  return lapack::info_of(LAPACK_zgees_base, 'V', 'N', nullptr, narrow(n), a, narrow(n), &unused, w.data(), z,
                         narrow(n), work.data(), narrow(8 * n), real_work.data(), nullptr) == 0;
}

// Computes the root of x in r, and overwrites x. Returns whether a root exists. The root of the Schur form is
// computed column by column: Björck & Hammarling 1983, "A Schur method for the square root of a matrix".
bool find_root(std::int64_t n, Complex128* x, Complex128* r) {
  CachedVector<Complex128> z(static_cast<std::size_t>(n * n));
  if (!schur(n, x, z.data())) return false;
  const auto at = [n](std::int64_t i, std::int64_t j) { return j * n + i; };
  for (std::int64_t j = 0; j < n; ++j) {
    r[at(j, j)] = std::sqrt(x[at(j, j)]);
    if (r[at(j, j)] == 0.0) return false;
    for (std::int64_t i = j; i-- > 0;) {
      Complex128 rest = x[at(i, j)];
      for (std::int64_t k = i + 1; k < j; ++k)
        rest -= r[at(i, k)] * r[at(k, j)];
      const Complex128 both = r[at(i, i)] + r[at(j, j)];
      if (both == 0.0) return false;
      r[at(i, j)] = rest / both;
    }
  }
  const Complex128 one = 1, zero = 0;
  const Int m = narrow(n);
  cblas_zgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, m, m, &one, z.data(), m, r, m, &zero, x, m);
  cblas_zgemm(CblasColMajor, CblasNoTrans, CblasConjTrans, m, m, m, &one, x, m, z.data(), m, &zero, r, m);
  return true;
}

template <class T> std::int64_t root_of(const T* x, std::int64_t n, T* y) {
  const std::int64_t size = n * n;
  if (!finite(x, size)) return std::fill_n(y, size, kNan<T>), 0;
  CachedVector<Complex128> t(x, x + size), r(static_cast<std::size_t>(size));
  if (!find_root(n, t.data(), r.data())) return 1;
  if constexpr (!std::is_floating_point_v<T>) {
    std::transform(r.begin(), r.end(), y, [](const Complex128& e) { return static_cast<T>(e); });
    return 0;
  } else {
    double real = 0, imaginary = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      const Complex128 e = r[static_cast<std::size_t>(i)];
      real = std::max(real, std::abs(e.real()));
      imaginary = std::max(imaginary, std::abs(e.imag()));
      y[i] = static_cast<T>(e.real());
    }
    return imaginary > 1e-7 * real;   // the root of a negative eigenvalue is imaginary
  }
}

Int gees(Int n, float* a, float* re, float* im, float* z, float* work, Int size, Int* unused) {
  return lapack::info_of(LAPACK_sgees_base, 'V', 'N', nullptr, n, a, n, unused, re, im, z, n, work, size,
                         nullptr);
}
Int gees(Int n, double* a, double* re, double* im, double* z, double* work, Int size, Int* unused) {
  return lapack::info_of(LAPACK_dgees_base, 'V', 'N', nullptr, n, a, n, unused, re, im, z, n, work, size,
                         nullptr);
}
Int trsyl(Int n, const float* t, float* c, float* scale) {
  return lapack::info_of(LAPACK_strsyl_base, 'N', 'N', 1, n, n, t, n, t, n, c, n, scale);
}
Int trsyl(Int n, const double* t, double* c, double* scale) {
  return lapack::info_of(LAPACK_dtrsyl_base, 'N', 'N', 1, n, n, t, n, t, n, c, n, scale);
}

// Bartels & Stewart 1972: x = q t qᵀ with t quasi-triangular, t y' + y' t = qᵀ b q, y = q y' qᵀ. LAPACK's
// column-major q is row-major qᵀ.
template <class T> std::int64_t sylvester_of(const T* x, const T* b, std::int64_t n, T* y) {
  const std::int64_t size = n * n;
  if (!finite(x, size) || !finite(b, size)) return std::fill_n(y, size, kNan<T>), 0;
  CachedVector<T> t(x, x + size), q(static_cast<std::size_t>(size)), c(static_cast<std::size_t>(size)),
      work(static_cast<std::size_t>(8 * n)), w(static_cast<std::size_t>(2 * n));
  Int unused = 0;
  if (gees(narrow(n), t.data(), w.data(), w.data() + n, q.data(), work.data(), narrow(8 * n), &unused))
    return 1;
  const MatrixProduct<T> with_q{
      .m = n, .n = n, .k = n, .a = nullptr, .b = q.data(), .y = nullptr, .lda = n, .ldb = n, .ldy = n};
  const auto times = [&](const T* a, bool a_transposed, const T* p, bool p_transposed, T* out) {
    MatrixProduct<T> one = with_q;
    one.a = a, one.a_transposed = a_transposed, one.b = p, one.b_transposed = p_transposed, one.y = out;
    gemm(one);
  };
  times(q.data(), false, b, false, y);   // LAPACK's qᵀ is q here
  times(y, false, q.data(), true, c.data());
  T scale = 1;
  if (trsyl(narrow(n), t.data(), c.data(), &scale) != 0) return 1;
  times(q.data(), true, c.data(), false, t.data());
  times(t.data(), false, q.data(), false, y);
  if (scale != 1)
    for (std::int64_t i = 0; i < size; ++i)
      y[i] /= scale;
  return 0;
}

// sylvester_of in complex numbers of double precision: x = q t qᴴ with t upper triangular. Overwrites x, and
// b with scale times the solution. Returns whether a solution exists.
bool solve_sylvester(std::int64_t n, Complex128* x, Complex128* b, double& scale) {
  CachedVector<Complex128> q(static_cast<std::size_t>(n * n)), half(static_cast<std::size_t>(n * n));
  if (!schur(n, x, q.data())) return false;
  const Int m = narrow(n);
  const auto times = [&](CBLAS_TRANSPOSE with_a, const Complex128* a, CBLAS_TRANSPOSE with_b,
                         const Complex128* other, Complex128* out) {
    const Complex128 one = 1, zero = 0;
    cblas_zgemm(CblasColMajor, with_a, with_b, m, m, m, &one, a, m, other, m, &zero, out, m);
  };
  times(CblasConjTrans, q.data(), CblasNoTrans, b, half.data());
  times(CblasNoTrans, half.data(), CblasNoTrans, q.data(), b);
  if (lapack::info_of(LAPACK_ztrsyl_base, 'N', 'N', 1, m, m, x, m, x, m, b, m, &scale)) return false;
  times(CblasNoTrans, q.data(), CblasNoTrans, b, half.data());
  times(CblasNoTrans, half.data(), CblasConjTrans, q.data(), b);
  return true;
}

template <class T> std::int64_t complex_sylvester_of(const T* x, const T* b, std::int64_t n, T* y) {
  const std::int64_t size = n * n;
  if (!finite(x, size) || !finite(b, size)) return std::fill_n(y, size, kNan<T>), 0;
  CachedVector<Complex128> t(x, x + size), c(b, b + size);
  double scale = 1;
  if (!solve_sylvester(n, t.data(), c.data(), scale)) return 1;
  for (std::int64_t i = 0; i < size; ++i)
    y[i] = static_cast<T>(c[static_cast<std::size_t>(i)] / scale);
  return 0;
}

}   // namespace

void matrix_exponential(const Tensor& x, Tensor& y) {
  const std::int64_t n = extent(x, 1);
  if (y.size() == 0) return;
  visit_trainable(x.dtype(), [&](auto one) {
    using T = decltype(one);
    for_each_matrix(matrices(x), 10 * n * n * n, [&](std::int64_t i) {
      return exponential_of(elements<T>(x) + i * n * n, n, elements<T>(y) + i * n * n), 0;
    });
  });
}

Failure matrix_square_root(const Tensor& x, Tensor& y) {
  const std::int64_t n = extent(x, 1);
  if (y.size() == 0) return {};
  return visit_trainable(x.dtype(), [&](auto one) {
    using T = decltype(one);
    return for_each_matrix(matrices(x), 100 * n * n * n, [&](std::int64_t i) {
      return root_of(elements<T>(x) + i * n * n, n, elements<T>(y) + i * n * n);
    });
  });
}

Failure sylvester(const Tensor& x, const Tensor& b, Tensor& y) {
  const std::int64_t n = extent(x, 1);
  if (y.size() == 0) return {};
  return visit_trainable(x.dtype(), [&](auto one) {
    using T = decltype(one);
    return for_each_matrix(matrices(y), 30 * n * n * n, [&](std::int64_t i) {
      const T *from = elements<T>(x) + matrix_of(x.shape(), y.shape(), i) * n * n,
              *right = elements<T>(b) + matrix_of(b.shape(), y.shape(), i) * n * n;
      T* to = elements<T>(y) + i * n * n;
      if constexpr (std::is_floating_point_v<T>)
        return sylvester_of(from, right, n, to);
      else
        return complex_sylvester_of(from, right, n, to);
    });
  });
}

}   // namespace tapedeck::kernels
