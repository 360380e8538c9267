// Prints the errors of the elementwise functions, for real and complex numbers, as a table in Markdown. The
// reference is libm or Boost.Math in long double, or an integral if neither has the function.
//   build/test/accuracy [POINTS] > docs/accuracy.md     100,000 points for each function and dtype by default
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>

#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/special_functions/bessel.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/expint.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/special_functions/zeta.hpp>

#include "tapedeck/tapedeck.h"

using namespace tapedeck;

namespace {

using Wide = long double;
namespace bm = boost::math;
constexpr Wide kPi = 3.14159265358979323846264338327950288L;

struct Measured {
  const char* name;
  std::function<Tensor(const Tensor&)> f;
  Wide (*exact)(Wide);
  double low, high;
  bool crosses =
      false;       // has zeros at other points than 0: next to them, an absolute error of 1e-15 is accepted
  int fewer = 1;   // takes only every n-th point
};

/// ∫ f from a to b, in intervals no longer than `step`.
template <class F> Wide integral(const F& f, Wide a, Wide b, Wide step) {
  const int parts = 1 + static_cast<int>(std::fabs(b - a) / step);
  Wide sum = 0;
  for (int i = 0; i < parts; ++i)
    sum +=
        bm::quadrature::gauss<Wide, 20>::integrate(f, a + (b - a) * i / parts, a + (b - a) * (i + 1) / parts);
  return sum;
}

Tensor like(const Tensor& x, double v) { return full_like(x, v); }

const Measured kFunctions[] = {
    {"sqrt", tapedeck::sqrt, std::sqrt, 0, 1000},
    {"rsqrt", tapedeck::rsqrt, [](Wide x) { return 1 / std::sqrt(x); }, 0, 1000},
    {"cbrt", tapedeck::cbrt, std::cbrt, -1000, 1000},
    {"exp", tapedeck::exp, std::exp, -80, 80},
    {"exp2", tapedeck::exp2, std::exp2, -120, 120},
    {"expm1", tapedeck::expm1, std::expm1, -5, 5},
    {"log", tapedeck::log, std::log, 0, 100},
    {"log1p", tapedeck::log1p, std::log1p, -1, 10},
    {"log2", tapedeck::log2, std::log2, 0, 100},
    {"log10", tapedeck::log10, std::log10, 0, 100},
    {"sin", tapedeck::sin, std::sin, -100, 100},
    {"cos", tapedeck::cos, std::cos, -100, 100},
    {"tan", tapedeck::tan, std::tan, -100, 100},
    {"asin", tapedeck::asin, std::asin, -1, 1},
    {"acos", tapedeck::acos, std::acos, -1, 1},
    {"atan", tapedeck::atan, std::atan, -10, 10},
    {"sinh", tapedeck::sinh, std::sinh, -80, 80},
    {"cosh", tapedeck::cosh, std::cosh, -80, 80},
    {"tanh", tapedeck::tanh, std::tanh, -10, 10},
    {"asinh", tapedeck::asinh, std::asinh, -100, 100},
    {"acosh", tapedeck::acosh, std::acosh, 1, 100},
    {"atanh", tapedeck::atanh, std::atanh, -1, 1},
    {"sigmoid", tapedeck::sigmoid, [](Wide x) { return 1 / (1 + std::exp(-x)); }, -40, 40},
    {"log_sigmoid", tapedeck::log_sigmoid,
     [](Wide x) { return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x)); }, -40, 40},
    {"pow(x, 1.75)", [](const Tensor& x) { return pow(x, like(x, 1.75)); },
     [](Wide x) { return std::pow(x, 1.75L); }, 0, 100},
    {"erf", tapedeck::erf, std::erf, -6, 6},
    {"erfc", tapedeck::erfc, std::erfc, -6, 9},
    {"erfinv", tapedeck::erfinv, [](Wide x) { return bm::erf_inv(x); }, -1, 1},
    {"erfcinv", tapedeck::erfcinv, [](Wide x) { return bm::erfc_inv(x); }, 0, 2, true},
    {"ndtri", tapedeck::ndtri, [](Wide x) { return -std::sqrt(2.0L) * bm::erfc_inv(2 * x); }, 0, 1, true},
    {"lgamma", tapedeck::lgamma, std::lgamma, -10, 20, true},
    {"digamma", tapedeck::digamma, [](Wide x) { return bm::digamma(x); }, -10, 20, true},
    {"polygamma(1, x)", [](const Tensor& x) { return polygamma(1, x); },
     [](Wide x) { return bm::trigamma(x); }, 0, 20},
    {"zeta(x, 1)", [](const Tensor& x) { return zeta(x, like(x, 1)); }, [](Wide x) { return bm::zeta(x); },
     1.01, 30},
    {"igamma(2.5, x)", [](const Tensor& x) { return igamma(like(x, 2.5), x); },
     [](Wide x) { return bm::gamma_p(2.5L, x); }, 0, 30},
    {"igamma(100, x)", [](const Tensor& x) { return igamma(like(x, 100), x); },
     [](Wide x) { return bm::gamma_p(100.0L, x); }, 30, 200},
    {"igammac(2.5, x)", [](const Tensor& x) { return igammac(like(x, 2.5), x); },
     [](Wide x) { return bm::gamma_q(2.5L, x); }, 0, 30},
    {"betainc(2.5, 0.75, x)", [](const Tensor& x) { return betainc(like(x, 2.5), like(x, 0.75), x); },
     [](Wide x) { return bm::ibeta(2.5L, 0.75L, x); }, 0, 1},
    {"dawsn", tapedeck::dawsn,
     [](Wide x) { return integral([x](Wide t) { return std::exp((t - x) * (t + x)); }, 0, x, 0.5L); }, -10,
     10, false, 50},
    {"expint", tapedeck::expint, [](Wide x) { return bm::expint(x); }, -30, 30, true},
    {"fresnel_sin", tapedeck::fresnel_sin,
     [](Wide x) { return integral([](Wide t) { return std::sin(kPi / 2 * t * t); }, 0, x, 0.25L); }, -8, 8,
     false, 50},
    {"fresnel_cos", tapedeck::fresnel_cos,
     [](Wide x) { return integral([](Wide t) { return std::cos(kPi / 2 * t * t); }, 0, x, 0.25L); }, -8, 8,
     false, 50},
    {"spence", tapedeck::spence,
     [](Wide x) {
       return integral([](Wide t) { return t == 1 ? -1 : std::log(t) / (1 - t); }, 1, x, 0.0625L);
     },
     0.25, 5, false, 50},
    {"bessel_i0", tapedeck::bessel_i0, [](Wide x) { return bm::cyl_bessel_i(0, x); }, -80, 80},
    {"bessel_i0e", tapedeck::bessel_i0e,
     [](Wide x) { return std::exp(-std::fabs(x)) * bm::cyl_bessel_i(0, x); }, -80, 80},
    {"bessel_i1", tapedeck::bessel_i1, [](Wide x) { return bm::cyl_bessel_i(1, x); }, -80, 80},
    {"bessel_i1e", tapedeck::bessel_i1e,
     [](Wide x) { return std::exp(-std::fabs(x)) * bm::cyl_bessel_i(1, x); }, -80, 80},
    {"bessel_j0", tapedeck::bessel_j0, [](Wide x) { return bm::cyl_bessel_j(0, x); }, -80, 80, true},
    {"bessel_j1", tapedeck::bessel_j1, [](Wide x) { return bm::cyl_bessel_j(1, x); }, -80, 80, true},
    {"bessel_k0", tapedeck::bessel_k0, [](Wide x) { return bm::cyl_bessel_k(0, x); }, 0, 80},
    {"bessel_k0e", tapedeck::bessel_k0e, [](Wide x) { return std::exp(x) * bm::cyl_bessel_k(0, x); }, 0, 80},
    {"bessel_k1", tapedeck::bessel_k1, [](Wide x) { return bm::cyl_bessel_k(1, x); }, 0, 80},
    {"bessel_k1e", tapedeck::bessel_k1e, [](Wide x) { return std::exp(x) * bm::cyl_bessel_k(1, x); }, 0, 80},
    {"bessel_y0", tapedeck::bessel_y0, [](Wide x) { return bm::cyl_neumann(0, x); }, 0, 80, true},
    {"bessel_y1", tapedeck::bessel_y1, [](Wide x) { return bm::cyl_neumann(1, x); }, 0, 80, true}};

using WideComplex = std::complex<Wide>;
struct ComplexFunction {
  const char* name;
  std::function<Tensor(const Tensor&)> f;
  WideComplex (*exact)(const WideComplex&);
  double reach;   // limit of the real and imaginary part
};

const ComplexFunction kComplexFunctions[] = {
    {"sqrt", tapedeck::sqrt, std::sqrt, 10},
    {"exp", tapedeck::exp, std::exp, 10},
    {"log", tapedeck::log, std::log, 10},
    {"sin", tapedeck::sin, std::sin, 10},
    {"cos", tapedeck::cos, std::cos, 10},
    {"tanh", tapedeck::tanh, std::tanh, 3},
    {"atan", tapedeck::atan, std::atan, 3},
    {"reciprocal", tapedeck::reciprocal, [](const WideComplex& z) { return Wide(1) / z; }, 10},
    {"pow(z, 1.75)", [](const Tensor& z) { return pow(z, like(z, 1.75)); },
     [](const WideComplex& z) { return std::pow(z, Wide(1.75)); }, 10}};

struct Worst {
  double ulps = 0, relative = 0;

  /// Adds an absolute error, for a value of that magnitude.
  template <class T> void count(Wide off, Wide exact) {
    if (!(off > 0) || !std::isfinite(static_cast<T>(exact)) || exact < std::numeric_limits<T>::min()) return;
    int exponent;
    std::frexp(static_cast<T>(exact), &exponent);
    ulps = std::max(ulps,
                    static_cast<double>(off / std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits)));
    relative = std::max(relative, static_cast<double>(off / exact));
  }
};

template <class T> Worst worst(const Measured& f, std::int64_t points) {
  const Tensor in = random::uniform({points / f.fewer}, {.seed = 1}, f.low, f.high, dtype_of<T>);
  const std::vector<T> x = in.template to_vector<T>(), y = f.f(in).template to_vector<T>();
  Worst all;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Wide exact = f.exact(x[i]), off = std::fabs(y[i] - exact);
    if (!f.crosses || off > 1e-15L || std::fabs(exact) >= 1e-3L) all.count<T>(off, std::fabs(exact));
  }
  return all;
}
template <class T> Worst worst(const ComplexFunction& f, std::int64_t points) {
  const auto part = [&](std::uint64_t seed) {
    return random::uniform({points}, {.seed = seed}, -f.reach, f.reach, dtype_of<T>);
  };
  const Tensor in = complex(part(1), part(2));
  const auto z = in.template to_vector<std::complex<T>>(), y = f.f(in).template to_vector<std::complex<T>>();
  Worst all;
  for (std::size_t i = 0; i < z.size(); ++i) {
    const WideComplex exact = f.exact(z[i]);
    all.count<T>(std::abs(WideComplex(y[i]) - exact), std::abs(exact));
  }
  return all;
}

}   // namespace

int main(int argc, char** argv) {
  const std::int64_t points = argc > 1 ? std::atoll(argv[1]) : 100'000;
  std::puts(
      "# Accuracy of elementwise functions\n\n"
      "Maximum errors over random points of an interval: for f32 in units in the last place (ulp), for f64 "
      "relative to the value. Printed by `build/test/accuracy`. The reference\n"
      "values are computed in long double by libm, Boost.Math or numerical integration. Near zeros with a "
      "change of sign, errors up to 1e-15 are ignored.\n");
  std::puts("| function | interval | points | f32, ulp | f64, relative |\n|---|---|---|---|---|");
  for (const Measured& f : kFunctions)
    std::printf("| %s | %g to %g | %lld | %.2f | %.1e |\n", f.name, f.low, f.high,
                static_cast<long long>(points / f.fewer), worst<float>(f, points).ulps,
                worst<double>(f, points).relative);
  std::puts(
      "\n## Complex functions\n\n"
      "Maximum distances from libm's value in long double, over random points of a square around 0: for c64 "
      "in units in the last place of the magnitude, for c128\n"
      "relative to the magnitude. So if one part is much smaller than the other, its own relative error may "
      "be larger.\n");
  std::puts("| function | both parts | points | c64, ulp | c128, relative |\n|---|---|---|---|---|");
  for (const ComplexFunction& f : kComplexFunctions)
    std::printf("| %s | %g to %g | %lld | %.2f | %.1e |\n", f.name, -f.reach, f.reach,
                static_cast<long long>(points), worst<float>(f, points).ulps,
                worst<double>(f, points).relative);
}
