// The Hurwitz zeta function, and polygamma functions computed from it, except trigamma, from Boost.Math.
#include <cmath>

#include <boost/math/special_functions/trigamma.hpp>

#include "kernels/special/boost_math.h"
#include "kernels/special/constants.h"
#include "kernels/special/special.h"

namespace tapedeck::kernels {
namespace {

/// The value at an integer that is not positive, or at -infinity.
double at_pole(double x) {
  if (std::isinf(x)) return kNaN;
  return kInfinity;
}

/// For s > 1 and q > 0: the first terms, then the Euler–Maclaurin formula for the rest (DLMF 25.11.5 with n
/// to infinity).
double of_positive(double s, double q) {
  double sum = 0, w = q;
  for (; w < 10 + s; ++w) {
    const double term = std::pow(w, -s);
    sum += term;
    if (term <= 1e-18 * sum) return sum;
  }
  const double power = std::pow(w, -s);
  sum += power * w / (s - 1) + power / 2;
  // B₂ₖ / (2k)!, times s (s + 1) … (s + 2k - 2) w^(1 - s - 2k).
  constexpr double kNumbers[] = {1.0 / 12,
                                 -1.0 / 720,
                                 1.0 / 30240,
                                 -1.0 / 1209600,
                                 1.0 / 47900160,
                                 -691.0 / 1307674368000.0,
                                 1.0 / 74724249600.0,
                                 -3617.0 / 10670622842880000.0};
  double factor = s * power / w, at = s;
  for (const double b : kNumbers) {
    sum += b * factor;
    factor *= (at + 1) * (at + 2) / (w * w);
    at += 2;
  }
  return sum;
}

}   // namespace

double zeta(double s, double q) {
  if (std::isnan(q) || !(s >= 1)) return kNaN;
  if (s == 1) return kInfinity;
  if (q > 0)
    return std::isinf(q) ? 0.0 : std::isinf(s) ? (q < 1 ? kInfinity : q == 1 ? 1.0 : 0.0) : of_positive(s, q);
  if (q == std::floor(q)) return at_pole(q);
  if (s != std::floor(s) || std::isinf(s)) return kNaN;
  // The terms with negative q + k are, up to sign, the terms of the positive numbers from `rest` to -q.
  const double rest = -q - std::floor(-q),
               negative = rest < -q ? of_positive(s, rest) - of_positive(s, 1 - q) : std::pow(-q, -s);
  return (std::fmod(s, 2) == 0 ? negative : -negative) + of_positive(s, 1 - rest);
}

double trigamma(double x) {
  if (!(x > 0) && x == std::floor(x)) return at_pole(x);
  return std::isinf(x) ? 0.0 : boost::math::trigamma(x, Quiet());
}

double polygamma(double n, double x) {
  if (!(n >= 0) || n != std::floor(n)) return kNaN;
  if (n == 0) return digamma(x);
  if (n == 1) return trigamma(x);
  const double z = zeta(n + 1, x), y = n <= 170 ? std::tgamma(n + 1) * z
                                                : std::exp(lgamma(n + 1) + std::log(z));   // DLMF 25.11.12
  return std::fmod(n, 2) == 0 ? -y : y;
}

}   // namespace tapedeck::kernels
