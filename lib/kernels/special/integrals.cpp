// Special integrals: Dawson, exponential, Fresnel and Spence.
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include <boost/math/special_functions/expint.hpp>

#include "kernels/special/boost_math.h"
#include "kernels/special/constants.h"
#include "kernels/special/special.h"

namespace tapedeck::kernels {
namespace {

using Complex = std::complex<Wide>;

/// Power series of S or C (DLMF 7.6.4 and 7.6.6). Terms alternate and cancel, hence long double.
Wide fresnel_series(Wide x, bool sine) {
  const Wide t = kWidePi / 2 * x * x;
  Wide power = sine ? t * x : x, sum = 0;
  for (int n = sine ? 1 : 0;; n += 2) {
    const Wide term = power / (2 * n + 1);
    sum += term;
    if (!(std::fabs(term) > 1e-21L * std::fabs(sum))) return sum;
    power *= -t * t / ((n + 1) * (n + 2));
  }
}

/// C + iS = (1 + i) / 2 · erf(√π / 2 (1 - i) x) (DLMF 7.5.8) with the continued fraction of erfc (DLMF 7.9.3,
/// even part), for large x.
Complex fresnel_fraction(double x) {
  const Wide square = kWidePi * x * x;
  const Complex tiny = 1e-300L;
  Complex b(1, -square), c = 1.0L / tiny, d = 1.0L / b, h = d;
  for (Wide n = 1; n < 2000; n += 2) {
    const Wide a = -n * (n + 1);
    b += 4;
    d = 1.0L / (a * d + b);
    c = b + a / c;
    const Complex step = c * d;
    h *= step;
    if (std::abs(step - 1.0L) < 1e-19L) break;
  }
  return Complex(0.5L, 0.5L) * (1.0L - fresnel_phase(x) * Complex(x, -x) * h);
}

double fresnel(double x, bool sine) {
  const double r = std::fabs(x);
  if (std::isnan(x) || x == 0) return x;   // -0 stays
  if (r > 1e153) return std::copysign(0.5, x);
  if (r < 2.2) return static_cast<double>(fresnel_series(x, sine));
  const Complex y = fresnel_fraction(r);
  return std::copysign(static_cast<double>(sine ? y.imag() : y.real()), x);
}

/// Li₂(z) by u = -log(1 - z), |u| ≤ log 2: Σ Bₙ uⁿ⁺¹ / (n + 1)!.
double dilogarithm(double u) {
  constexpr double kNumbers[] = {1.0 / 36,
                                 -1.0 / 3600,
                                 1.0 / 211680,
                                 -1.0 / 10886400,
                                 1.0 / 526901760,
                                 -691.0 / 16999766784000.0,
                                 1.0 / 1120863744000.0,
                                 -3617.0 / 181400588328960000.0};
  double sum = 0;
  for (int k = 7; k >= 0; --k)
    sum = sum * u * u + kNumbers[k];
  return u - u * u / 4 + u * u * u * sum;
}

/// Dawson's integral divided by exp(-x²): Σ x²ᵏ⁺¹ / (k! (2k + 1)), whose terms have one sign (DLMF 7.6.2).
template <class T> T dawson_series(T x) {
  const T square = x * x;
  T sum = 0, power = x;
  for (int k = 0;; ++k) {
    const T term = power / (2 * k + 1);
    sum += term;
    if (!(std::fabs(term) > std::numeric_limits<T>::epsilon() / 20 * std::fabs(sum))) return sum;
    power *= square / (k + 1);
  }
}

}   // namespace

/// The angle is πx²/2 modulo 2π: x² in two parts, each reduced modulo 4. Large x are even, so it is 0.
std::complex<long double> fresnel_phase(double x) {
  if (std::fabs(x) > 1e17) return {std::isinf(x) ? kNaN : 1, std::isinf(x) ? kNaN : 0};
  const double high = x * x, low = std::fma(x, x, -high);
  const Wide angle =
      kWidePi / 2 * (static_cast<Wide>(std::fmod(high, 4)) + static_cast<Wide>(std::fmod(low, 4)));
  return {std::cos(angle), std::sin(angle)};
}

double dawsn(double x) {
  if (x == 0) return x;   // -0 stays
  if (std::fabs(x) < 6.5) return std::exp(-x * x) * dawson_series(x);
  // Σ (2k - 1)!! / (2ᵏ⁺¹ x²ᵏ⁺¹), DLMF 7.12.1.
  const double square = x * x;
  double sum = 0, term = 0.5 / x;
  for (int k = 1; k < 40; ++k) {
    sum += term;
    term *= (2 * k - 1) / (2 * square);
    if (!(std::fabs(term) > 1e-17 * std::fabs(sum))) break;
  }
  return sum;
}
long double dawsn_series(double x) {
  const double high = x * x, low = std::fma(x, x, -high);
  return std::exp(-Wide(high)) * (1 - Wide(low)) * dawson_series(Wide(x));
}

double expint(double x) {
  if (x == 0) return -kInfinity;
  if (std::isinf(x)) return x > 0 ? x : -0.0;
  if (std::fabs(x) < std::numeric_limits<double>::min())   // which Boost.Math mistakes for other numbers
    return std::log(std::fabs(x)) + std::numbers::egamma;
  return std::isnan(x) ? x : boost::math::expint(x, Quiet());
}

double fresnel_sin(double x) { return fresnel(x, true); }
double fresnel_cos(double x) { return fresnel(x, false); }

/// Li₂(1 - x), reduced to [1/2, 2] by the identities for 1 / x and 1 - x (DLMF 25.12.4 and 25.12.6).
double spence(double x) {
  if (!(x >= 0)) return kNaN;
  if (x == 0) return kPi * kPi / 6;
  if (std::isinf(x)) return -x;
  if (x > 2) {
    const double l = std::log(x);
    return -0.5 * l * l - spence(1 / x);
  }
  if (x < 0.5) return kPi * kPi / 6 - std::log(x) * std::log1p(-x) - dilogarithm(-std::log1p(-x));
  return dilogarithm(0 - std::log(x));   // +0 at 1
}

}   // namespace tapedeck::kernels
