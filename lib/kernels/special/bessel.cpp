// Bessel functions of orders 0 and 1, from Boost.Math.
#include <cmath>
#include <limits>
#include <numbers>

#include <boost/math/special_functions/bessel.hpp>

#include "kernels/special/boost_math.h"
#include "kernels/special/constants.h"
#include "kernels/special/special.h"

namespace tapedeck::kernels {
namespace {

/// 1 ± (4n² - 1) / (8x) + (4n² - 1) (4n² - 9) / (2! (8x)²) …, with the sign of K (DLMF 10.40.2) or I
/// (10.40.1), for large x.
template <int n> double large_argument_series(double x, double sign) {
  double term = 1, sum = 1;
  for (int k = 1; k < 40 && std::fabs(term) > 1e-17; ++k)
    sum += term *= sign * (4 * n * n - (2 * k - 1) * (2 * k - 1)) / (8 * k * x);
  return sum;
}

template <int n> double i(double x) {
  const double r = std::fabs(x), y = r > 750 ? kInfinity : boost::math::cyl_bessel_i(n, r, Quiet());
  return n == 1 ? std::copysign(y, x) : y;
}

template <int n> double scaled_i(double x) {
  const double r = std::fabs(x);
  if (r < 700) return std::exp(-r) * i<n>(x);
  const double y = large_argument_series<n>(r, -1) / std::sqrt(6.283185307179586 * r);
  return n == 1 && x < 0 ? -y : y;
}

template <int n> double k(double x) {
  if (!(x >= 0)) return kNaN;
  if (x == 0) return kInfinity;
  return x > 750 ? 0 : boost::math::cyl_bessel_k(n, x, Quiet());
}

template <int n> double scaled_k(double x) {
  if (!(x > 30)) return std::exp(x) * k<n>(x);
  return large_argument_series<n>(x, 1) * std::sqrt(1.5707963267948966 / x);
}

template <int n> double j(double x) {
  if (std::isnan(x) || (n == 1 && x == 0)) return x;
  return std::isinf(x) ? 0 : boost::math::cyl_bessel_j(n, x, Quiet());
}

/// Uses the first term of the power series (DLMF 10.8.1 and 10.8.2) for numbers that Boost.Math treats as 0.
template <int n> double y(double x) {
  if (!(x >= 0)) return kNaN;
  if (x == 0) return -kInfinity;
  if (x < std::numeric_limits<double>::min())
    return 2 * std::numbers::inv_pi *
           (n == 0 ? std::log(x) - std::numbers::ln2 + std::numbers::egamma : -1 / x);
  return std::isinf(x) ? 0 : boost::math::cyl_neumann(n, x, Quiet());
}

}   // namespace

double bessel_i0(double x) { return std::isnan(x) ? x : i<0>(x); }
double bessel_i1(double x) { return std::isnan(x) ? x : i<1>(x); }
double bessel_i0e(double x) { return std::isnan(x) ? x : scaled_i<0>(x); }
double bessel_i1e(double x) { return std::isnan(x) ? x : scaled_i<1>(x); }
double bessel_j0(double x) { return j<0>(x); }
double bessel_j1(double x) { return j<1>(x); }
double bessel_k0(double x) { return k<0>(x); }
double bessel_k1(double x) { return k<1>(x); }
double bessel_k0e(double x) { return scaled_k<0>(x); }
double bessel_k1e(double x) { return scaled_k<1>(x); }
double bessel_y0(double x) { return y<0>(x); }
double bessel_y1(double x) { return y<1>(x); }

}   // namespace tapedeck::kernels
