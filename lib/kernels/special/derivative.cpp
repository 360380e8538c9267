// Derivatives of special functions whose formulas in terms of the functions suffer from cancellation.
// Computed in long double, which has 11 more bits; for large arguments, from the asymptotic series, term by
// term.
#include <cmath>
#include <complex>
#include <limits>

#include <boost/math/special_functions/bessel.hpp>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/special/boost_math.h"
#include "kernels/special/constants.h"
#include "kernels/special/derivative.h"
#include "kernels/special/special.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kDerivativeCut = {1 << 8, 1 << 10};      // of elements
constexpr double kLargeBessel = 30, kLargeDawsn = 7;   // from here on the series are exact

/// a (a + 1) … (a + m - 1).
Wide rising(Wide a, int m) {
  Wide y = 1;
  for (int i = 0; i < m; ++i)
    y *= a + i;
  return y;
}
/// The sum of f(k) times the binomial coefficient of m and k, over k.
template <class F> Wide binomial_sum(int m, F f) {
  Wide sum = 0, binomial = 1;
  for (int k = 0; k <= m; ++k) {
    sum += binomial * f(k);
    binomial = binomial * (m - k) / (k + 1);
  }
  return sum;
}

// DLMF 10.29.5 and 10.6.7: derivatives as sums of functions of other orders. Boost.Math does not return from
// infinite arguments.
Wide bessel_i(int n, int m, Wide r) {
  if (!std::isfinite(r)) return r;
  return std::ldexp(
      binomial_sum(m, [&](int k) { return boost::math::cyl_bessel_i(std::abs(n - m + 2 * k), r, Quiet()); }),
      -m);
}
Wide bessel_k(int n, int m, Wide r) {
  if (!std::isfinite(r)) return std::isnan(r) ? r : 0;
  return std::ldexp(
             binomial_sum(
                 m, [&](int k) { return boost::math::cyl_bessel_k(std::abs(n - m + 2 * k), r, Quiet()); }),
             -m) *
         (m % 2 ? -1 : 1);
}
double bessel_j(int n, int m, double x) {
  if (!std::isfinite(x)) return std::isnan(x) ? x : 0;
  const Wide sum = binomial_sum(m, [&](int k) {
    return (k % 2 ? -1 : 1) * Wide(boost::math::cyl_bessel_j(n - m + 2 * k, x, Quiet()));
  });
  return static_cast<double>(std::ldexp(sum, -m));
}

/// The m-th derivative of an asymptotic series whose term k has the exponent -power(k). In the derivative the
/// first coefficient is `coefficient`, and ratio(k) leads from term k to the next.
template <class Power, class Ratio>
Wide derivative_of_series(int m, Wide coefficient, const Power& power, const Ratio& ratio) {
  Wide sum = 0;
  for (int k = 0; k < 60; ++k) {
    const Wide term = coefficient * rising(power(k), m);
    sum += term;
    if (std::fabs(term) < 1e-20L * std::fabs(sum)) break;
    coefficient *= ratio(k);
  }
  return m % 2 ? -sum : sum;
}
/// The m-th derivative of r^(-½) (1 ± (4n² - 1) / (8r) + …), with the sign of K (DLMF 10.40.2) or I
/// (10.40.1).
Wide large_argument_series(int n, int m, Wide r, int sign) {
  return derivative_of_series(
      m, std::pow(r, -0.5L - m), [](int k) { return k + 0.5L; },
      [&](int k) { return sign * (4 * n * n - (2 * k + 1) * (2 * k + 1)) / (8 * (k + 1) * r); });
}

// The first derivatives, for arguments at which terms cancel little.
double first_of_scaled_i(int n, double x) {
  const double i0 = bessel_i0e(x), i1 = bessel_i1e(x), sign = x > 0 ? 1 : -1;
  return n == 0 ? i1 - sign * i0 : i0 - i1 * (sign + 1 / x);
}
double first_of_scaled_k(int n, double x) {
  const double k0 = bessel_k0e(x), k1 = bessel_k1e(x);
  return n == 0 ? k0 - k1 : k1 * (1 - 1 / x) - k0;
}

/// The derivative of order m of exp(-|x|) Iₙ(x), which is even if n is, and otherwise odd. An odd derivative
/// is 0 at 0.
double scaled_i(int n, int m, double x, double moderate) {
  const Wide r = std::fabs(x);
  if (m == 1 && r < moderate && r > 1e-300) return first_of_scaled_i(n, x);   // else 1 / x may be infinite
  const Wide y =
      r < kLargeBessel
          ? std::exp(-r) * binomial_sum(m, [&](int j) { return ((m - j) % 2 ? -1 : 1) * bessel_i(n, j, r); })
          : large_argument_series(n, m, r, -1) / std::sqrt(2 * kWidePi);
  const double value = static_cast<double>(y);
  return (n + m) % 2 == 0 ? value : x == 0 ? 0 : std::copysign(value, x < 0 ? -value : value);
}
double scaled_k(int n, int m, double x, double moderate) {
  const Wide r = x;
  if (!(x > 0))
    return x == 0 ? (m % 2 ? -1 : 1) * std::numeric_limits<double>::infinity()
                  : std::numeric_limits<double>::quiet_NaN();
  if (m == 1 && r < moderate) return first_of_scaled_k(n, x);
  if (x >= kLargeBessel)
    return static_cast<double>(large_argument_series(n, m, r, 1) * std::sqrt(kWidePi / 2));
  return static_cast<double>(std::exp(r) * binomial_sum(m, [&](int j) { return bessel_k(n, j, r); }));
}

/// F' = 1 - 2xF, F⁽ᵏ⁺¹⁾ = -2xF⁽ᵏ⁾ - 2kF⁽ᵏ⁻¹⁾; for large x Σ (2k - 1)!! / (2ᵏ⁺¹ x²ᵏ⁺¹) (DLMF 7.12.1).
double dawsn_derivative(int m, double x) {
  const Wide w = x;
  if (std::fabs(x) < kLargeDawsn) {
    Wide last = dawsn_series(x), y = 1 - 2 * w * last;
    for (int k = 1; k < m; ++k) {
      const Wide next = -2 * (w * y + k * last);
      last = y;
      y = next;
    }
    return static_cast<double>(y);
  }
  return static_cast<double>(derivative_of_series(
      m, 0.5L * std::pow(w, -1 - m), [](int k) { return Wide(2 * k + 1); },
      [&](int k) { return (2 * k + 1) / (2 * w * w); }));
}

/// The first derivative is log x / (1 - x): near 1 its power series, term by term; else (1 - x) f⁽ᵏ⁺¹⁾ =
/// k f⁽ᵏ⁾ + (log x)⁽ᵏ⁾.
double spence_derivative(int m, double x) {
  const Wide w = x, rest = 1 - w;
  if (std::isinf(x)) return x > 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
  if (std::fabs(rest) < 0.25L) {
    Wide power = 1, sum = 0;
    for (int k = m - 1;; ++k) {
      const Wide term = power * rising(k - m + 2, m - 1) / (k + 1);
      sum += term;
      if (!(std::fabs(term) > 1e-20L * std::fabs(sum))) break;
      power *= rest;
    }
    return static_cast<double>(m % 2 ? -sum : sum);
  }
  Wide y = std::log(w) / rest, of_log = 1 / w;
  for (int k = 1; k < m; ++k) {
    y = (k * y + of_log) / rest;
    of_log *= -k / w;
  }
  return static_cast<double>(y);
}

/// Derivative m ≥ 1 of C + iS, the integral of h = exp(i πx²/2): derivative m - 1 of h, by h' = iπx h.
std::complex<Wide> fresnel(int m, double x) {
  using namespace std::complex_literals;
  const Wide w = x;
  std::complex<Wide> last = 0, y = fresnel_phase(x);
  for (int k = 0; k + 1 < m; ++k) {
    const std::complex<Wide> next = kWidePi * 1.0il * (w * y + static_cast<Wide>(k) * last);
    last = y;
    y = next;
  }
  return y;
}

}   // namespace

double derivative(SpecialFunction f, int order, double x, bool single) {
  const double moderate = single ? kLargeBessel : 1.5;
  using enum SpecialFunction;
  if (std::isnan(x)) return x;
  switch (f) {
    case bessel_i1:
      if (std::isinf(x)) return order % 2 == 1 ? INFINITY : x;
      return static_cast<double>(bessel_i(1, order, x));
    case bessel_j1:
      return bessel_j(1, order, x);
    case bessel_i0e:
      return scaled_i(0, order, x, moderate);
    case bessel_i1e:
      return scaled_i(1, order, x, moderate);
    case bessel_k0e:
      return scaled_k(0, order, x, moderate);
    case bessel_k1e:
      return scaled_k(1, order, x, moderate);
    case dawsn:
      return dawsn_derivative(order, x);
    case spence:
      return spence_derivative(order, x);
    case fresnel_sin:
      return static_cast<double>(fresnel(order, x).imag());
    case fresnel_cos:
      break;
  }
  return static_cast<double>(fresnel(order, x).real());
}

void derivative(SpecialFunction f, int order, const Tensor& x, Tensor& y) {
  visit_floating(y.dtype(), [&]<class T>(T) {
    const T* in = elements<T>(x);
    T* out = elements<T>(y);
    parallel_for(y.size(), kDerivativeCut, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        out[i] = static_cast<T>(derivative(f, order, static_cast<double>(in[i]), sizeof(T) == 4));
    });
  });
}

}   // namespace tapedeck::kernels
