// Derivatives of the regularized incomplete gamma function P(a, x) with respect to a, by truncated power
// series: P(a + ε, x) is computed as a series in ε.
#include "kernels/special/igamma_grad.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/random/quantile.h"
#include "kernels/special/special.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kIgammaGradCut = {1 << 8, 1 << 10};   // of elements
constexpr int kMostTerms = 100'000;
constexpr double kLargeShape = 1e6;   // from here on expansions for large a are used

/// c[0] + c[1] ε + … + c[n - 1] εⁿ⁻¹.
template <int n> struct Series {
  std::array<double, n> c{};

  explicit Series(double constant = 0, double slope = 0) { c[0] = constant, c[1] = slope; }
  double& operator[](int i) { return c[static_cast<std::size_t>(i)]; }
  double operator[](int i) const { return c[static_cast<std::size_t>(i)]; }

  friend Series operator+(Series a, const Series& b) {
    for (int i = 0; i < n; ++i)
      a[i] += b[i];
    return a;
  }
  friend Series operator*(const Series& a, const Series& b) {
    Series y;
    for (int i = 0; i < n; ++i)
      for (int k = 0; k <= i; ++k)
        y[i] += a[k] * b[i - k];
    return y;
  }
  friend Series operator/(const Series& a, const Series& b) {
    const double reciprocal = 1 / b[0];
    Series y;
    for (int i = 0; i < n; ++i) {
      double rest = a[i];
      for (int k = 0; k < i; ++k)
        rest -= y[k] * b[i - k];
      y[i] = rest * reciprocal;
    }
    return y;
  }
};

/// exp of a series with constant term 0: y' = a' y, term by term.
template <int n> Series<n> exp(const Series<n>& a) {
  Series<n> y(1);
  for (int i = 1; i < n; ++i) {
    double sum = 0;
    for (int k = 1; k <= i; ++k)
      sum += k * a[k] * y[i - k];
    y[i] = sum / i;
  }
  return y;
}

template <int n> Series<n> sqrt(const Series<n>& a) {
  Series<n> y(std::sqrt(a[0]));
  for (int i = 1; i < n; ++i) {
    double rest = a[i];
    for (int k = 1; k < i; ++k)
      rest -= y[k] * y[i - k];
    y[i] = rest / (2 * y[0]);
  }
  return y;
}

template <int n> bool negligible(const Series<n>& step, const Series<n>& sum) {
  for (int i = 0; i < n; ++i)
    if (std::fabs(step[i]) > 1e-17 * std::fabs(sum[i])) return false;
  return true;
}

/// xᵃ e⁻ˣ / Γ(a + 1) divided by its value at ε = 0, gamma_density(a + 1, x).
template <int n> Series<n> prefactor(double a, double x) {
  Series<n> exponent;
  double factorial = 1;
  for (int i = 1; i < n; ++i)
    exponent[i] = -polygamma(i - 1, a + 1) / (factorial *= i);
  exponent[1] += std::log(x);
  return exp(exponent);
}

/// Σ xᵏ / ((a + 1) … (a + k)), DLMF 8.7.1 and 8.2.6.
template <int n> Series<n> lower_series(double a, double x) {
  Series<n> term(1), sum = term;
  for (int k = 1; k < kMostTerms; ++k) {
    const double reciprocal = 1 / (a + k);   // term *= x / (a + k + ε)
    term[0] *= x * reciprocal;
    for (int i = 1; i < n; ++i)
      term[i] = (x * term[i] - term[i - 1]) * reciprocal;
    sum = sum + term;
    if (negligible(term, sum)) break;
  }
  return sum;
}

/// The continued fraction of Γ(a, x) / (xᵃ e⁻ˣ), DLMF 8.9.2 (even part), by Lentz's method.
template <int n> Series<n> upper_series(double a, double x) {
  Series<n> b(x + 1 - a, -1), c(1e300), d = Series<n>(1) / b, h = d;
  for (int i = 1; i < kMostTerms; ++i) {
    const Series<n> numerator(-i * (i - a), i);
    b[0] += 2;
    d = Series<n>(1) / (numerator * d + b);
    c = b + numerator / c;
    Series<n> step = c * d;
    step[0] -= 1;
    const Series<n> change = h * step;
    h = h + change;
    if (negligible(change, h)) break;
  }
  return h;
}

/// P(a, x) = Φ(z) for large a: the Cornish–Fisher expansion of the quantile x in the normal quantile z
/// (Abramowitz & Stegun 26.2.49), x = a + z √a + (z² - 1) / 3 + (z³ - 7 z) / (36 √a) + …, solved for z. a and
/// its root are numbers or series.
template <class T> T normal_quantile(const T& a, const T& root, double x) {
  const T w = (T(x) + T(-1) * a) / root;
  T z = w;
  for (int i = 0; i < 4; ++i) {
    const T square = z * z;
    z = w + (T(1) + T(-1) * square) / (T(3) * root) + z * (T(7) + T(-1) * square) / (T(36) * a);
  }
  return z;
}
double expanded_gamma_grad(double a, double y) {
  const double root = std::sqrt(a), z = normal_quantile(a, root, y);
  return 1 + z / (2 * root) - z * (z * z - 7) / (72 * a * root);
}
/// Whether the expansion is accurate to 10⁻⁶ at x; elsewhere, the other series need few terms.
bool is_expanded(double a, double x) {
  return a > kLargeShape && std::fabs(x - a) < 8 * std::sqrt(a) * std::pow(a / kLargeShape, 0.25);
}
/// P / gamma_density(a + 1, x), without the constant term: Φ' = φ(z) z', and φ(z) / gamma_density(a + 1, x)
/// is a / x divided by the derivative of z with respect to x.
template <int n> Series<n> expanded(double a, double x) {
  const Series<n> shape(a, 1), root = sqrt(shape), z = normal_quantile(shape, root, x);
  Series<n> exponent = z * z * Series<n>(-0.5);
  exponent[0] = 0;
  const Series<n> density = exp(exponent);
  const double square = z[0] * z[0],
               slope = root[0] * (1 + 2 * z[0] / (3 * root[0]) + (3 * square - 7) / (36 * a));   // dx/dz
  Series<n> y;
  for (int i = 1; i < n; ++i) {
    for (int k = 1; k <= i; ++k)
      y[i] += k * z[k] * density[i - k] / i;
    y[i] *= slope * a / x;
  }
  return y;
}

/// P / gamma_density(a + 1, x), but without the constant term where P is computed as 1 - Q.
template <int n> Series<n> over_density(double a, double x) {
  if (is_expanded(a, x)) return expanded<n>(a, x);
  const Series<n> y = prefactor<n>(a, x);
  return x < a + 1 ? y * lower_series<n>(a, x) : y * Series<n>(-a, -1) * upper_series<n>(a, x);
}
/// The coefficient of εᵒʳᵈᵉʳ.
template <int n = 2> double term_over_density(double a, double x, int order) {
  if constexpr (n <= kLargestOrder)
    if (order >= n) return term_over_density<n + 1>(a, x, order);
  return over_density<n>(a, x)[order];
}

}   // namespace

double igamma_grad(double a, double x, int order) {
  if (!(a > 0 && x >= 0) || std::isinf(a)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0 || std::isinf(x)) return 0;
  double y = gamma_density(a + 1, x);
  if (y == 0) return 0;
  for (int i = 2; i <= order; ++i)
    y *= i;
  return term_over_density(a, x, order) * y;
}

// Implicit differentiation at fixed P: dy/da = -∂P/∂a / gamma_density(a, y), and gamma_density(a, y) is a / y
// times gamma_density(a + 1, y).
double gamma_grad(double a, double y) {
  if (!(a > 0 && y >= 0) || std::isinf(a) || std::isinf(y)) return std::numeric_limits<double>::quiet_NaN();
  if (y == 0) return 0;
  if (a > kLargeShape) return expanded_gamma_grad(a, y);
  return -over_density<2>(a, y)[1] * y / a;
}

double second_igamma_grad_over_density(double a, double y) {
  if (!(a > 0 && y > 0) || std::isinf(a) || std::isinf(y)) return std::numeric_limits<double>::quiet_NaN();
  return 2 * over_density<3>(a, y)[2] * y / a;
}

void igamma_grad(const Tensor& a, const Tensor& x, int order, Tensor& y) {
  visit_floating(y.dtype(), [&]<class T>(T) {
    const T *p = elements<T>(a), *q = elements<T>(x);
    T* out = elements<T>(y);
    parallel_for(y.size(), kIgammaGradCut, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        out[i] = static_cast<T>(igamma_grad(static_cast<double>(p[i]), static_cast<double>(q[i]), order));
    });
  });
}

}   // namespace tapedeck::kernels
