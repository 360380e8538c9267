// Error functions, gamma and beta functions, from Boost.Math and libm.
#include <cmath>
#include <limits>

#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/expint.hpp>
#include <boost/math/special_functions/gamma.hpp>

#include "kernels/special/boost_math.h"
#include "kernels/special/constants.h"
#include "kernels/special/special.h"

namespace tapedeck::kernels {
namespace {

using Short = normalise<Quiet, digits2<30>>::type;

/// Q(a, x) for subnormal a, by which Boost.Math divides: it is a E₁(x), and P(a, x) rounds to 1.
double of_subnormal(double a, double x) { return x == 0 ? 1 : -a * boost::math::expint(-x, Quiet()); }
bool is_subnormal(double a) { return a < std::numeric_limits<double>::min(); }

template <class Policy> double regularized_lower(double a, double x) {
  if (!(a > 0 && x >= 0) || (std::isinf(a) && std::isinf(x))) return kNaN;
  if (is_subnormal(a)) return x == 0 ? 0 : 1;
  return std::isinf(a) ? 0 : std::isinf(x) ? 1 : boost::math::gamma_p(a, x, Policy());
}
template <class Policy> double regularized_upper(double a, double x) {
  if (!(a > 0 && x >= 0) || (std::isinf(a) && std::isinf(x))) return kNaN;
  if (is_subnormal(a)) return std::isinf(x) ? 0 : of_subnormal(a, x);
  return std::isinf(a) ? 1 : std::isinf(x) ? 0 : boost::math::gamma_q(a, x, Policy());
}

}   // namespace

double erfinv(double x) {
  if (!(std::fabs(x) <= 1)) return kNaN;
  if (x == 0) return x;   // -0 stays
  return std::fabs(x) == 1 ? std::copysign(kInfinity, x) : boost::math::erf_inv(x, Quiet());
}

double erfcinv(double x) {
  if (!(x >= 0 && x <= 2)) return kNaN;
  return x == 0 ? kInfinity : x == 2 ? -kInfinity : boost::math::erfc_inv(x, Quiet());
}

double ndtri(double x) { return 0 - 1.4142135623730951 * erfcinv(2 * x); }   // +0 at 1/2

double lgamma(double x) {
  int sign;   // lgamma without _r writes to a global variable
  return ::lgamma_r(x, &sign);
}

double digamma(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (std::isinf(x)) return x > 0 ? x : kNaN;
  if (!(x > 0 || x != std::floor(x))) return kNaN;
  if (x > 0) return boost::math::digamma(x, Quiet());
  // Reflected (DLMF 5.5.4), with the exact distance to the pole.
  return boost::math::digamma(1 - x, Quiet()) -
         3.141592653589793 / std::tan(3.141592653589793 * (x - std::round(x)));
}

double igamma(double a, double x) { return regularized_lower<Quiet>(a, x); }
double igammac(double a, double x) { return regularized_upper<Quiet>(a, x); }
double short_igamma(double a, double x) { return regularized_lower<Short>(a, x); }
double short_igammac(double a, double x) { return regularized_upper<Short>(a, x); }

double gamma_density(double a, double x) {
  if (!(a > 0 && x >= 0) || std::isinf(a)) return kNaN;
  if (x == 0) return a < 1 ? kInfinity : a == 1 ? 1 : 0;
  return std::isinf(x) ? 0 : boost::math::gamma_p_derivative(a, x, Quiet());
}

double betainc(double a, double b, double x) {
  if (!(a > 0 && b > 0 && x >= 0 && x <= 1) || std::isinf(a) || std::isinf(b)) return kNaN;
  return x == 0 || x == 1 ? x : boost::math::ibeta(a, b, x, Quiet());
}

}   // namespace tapedeck::kernels
