// The errors of the elementwise functions. Values, first and second derivatives over the whole range are
// compared with test/data/accuracy.txt, which scripts/accuracy_values wrote. Values at more points of an
// interval are compared with libm or Boost.Math in long double, or an integral if neither has the function.
//   build/test/accuracy [POINTS] > docs/reference/accuracy.md     100,000 points of an interval by default
//   build/test/accuracy --check                         fails where test/data/accuracy_limits.txt is exceeded
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

#include "over_range.h"
#include "tapedeck/tapedeck.h"

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

using Wide = long double;
namespace bm = boost::math;
constexpr Wide kPi = 3.14159265358979323846264338327950288L;

struct Measured {
  const char* name;
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
    {"sqrt", std::sqrt, 0, 1000},
    {"rsqrt", [](Wide x) { return 1 / std::sqrt(x); }, 0, 1000},
    {"cbrt", std::cbrt, -1000, 1000},
    {"exp", std::exp, -80, 80},
    {"exp2", std::exp2, -120, 120},
    {"expm1", std::expm1, -5, 5},
    {"log", std::log, 0, 100},
    {"log1p", std::log1p, -1, 10},
    {"log2", std::log2, 0, 100},
    {"log10", std::log10, 0, 100},
    {"sin", std::sin, -100, 100},
    {"cos", std::cos, -100, 100},
    {"tan", std::tan, -100, 100},
    {"asin", std::asin, -1, 1},
    {"acos", std::acos, -1, 1},
    {"atan", std::atan, -10, 10},
    {"sinh", std::sinh, -80, 80},
    {"cosh", std::cosh, -80, 80},
    {"tanh", std::tanh, -10, 10},
    {"asinh", std::asinh, -100, 100},
    {"acosh", std::acosh, 1, 100},
    {"atanh", std::atanh, -1, 1},
    {"sigmoid", [](Wide x) { return 1 / (1 + std::exp(-x)); }, -40, 40},
    {"log_sigmoid", [](Wide x) { return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x)); },
     -40, 40},
    {"pow(x, 1.75)", [](Wide x) { return std::pow(x, 1.75L); }, 0, 100},
    {"erf", std::erf, -6, 6},
    {"erfc", std::erfc, -6, 9},
    {"erfinv", [](Wide x) { return bm::erf_inv(x); }, -1, 1},
    {"erfcinv", [](Wide x) { return bm::erfc_inv(x); }, 0, 2, true},
    {"ndtri", [](Wide x) { return -std::sqrt(2.0L) * bm::erfc_inv(2 * x); }, 0, 1, true},
    {"lgamma", std::lgamma, -10, 20, true},
    {"digamma", [](Wide x) { return bm::digamma(x); }, -10, 20, true},
    {"polygamma(1, x)", [](Wide x) { return bm::trigamma(x); }, 0, 20},
    {"zeta(x, 1)", [](Wide x) { return bm::zeta(x); }, 1.01, 30},
    {"igamma(2.5, x)", [](Wide x) { return bm::gamma_p(2.5L, x); }, 0, 30},
    {"igamma(100, x)", [](Wide x) { return bm::gamma_p(100.0L, x); }, 30, 200},
    {"igammac(2.5, x)", [](Wide x) { return bm::gamma_q(2.5L, x); }, 0, 30},
    {"betainc(2.5, 0.75, x)", [](Wide x) { return bm::ibeta(2.5L, 0.75L, x); }, 0, 1},
    {"dawsn",
     [](Wide x) { return integral([x](Wide t) { return std::exp((t - x) * (t + x)); }, 0, x, 0.5L); }, -10,
     10, false, 50},
    {"expint", [](Wide x) { return bm::expint(x); }, -30, 30, true},
    {"fresnel_sin",
     [](Wide x) { return integral([](Wide t) { return std::sin(kPi / 2 * t * t); }, 0, x, 0.25L); }, -8, 8,
     false, 50},
    {"fresnel_cos",
     [](Wide x) { return integral([](Wide t) { return std::cos(kPi / 2 * t * t); }, 0, x, 0.25L); }, -8, 8,
     false, 50},
    {"spence",
     [](Wide x) {
       return integral([](Wide t) { return t == 1 ? -1 : std::log(t) / (1 - t); }, 1, x, 0.0625L);
     },
     0.25, 5, false, 50},
    {"bessel_i0", [](Wide x) { return bm::cyl_bessel_i(0, x); }, -80, 80},
    {"bessel_i0e", [](Wide x) { return std::exp(-std::fabs(x)) * bm::cyl_bessel_i(0, x); }, -80, 80},
    {"bessel_i1", [](Wide x) { return bm::cyl_bessel_i(1, x); }, -80, 80},
    {"bessel_i1e", [](Wide x) { return std::exp(-std::fabs(x)) * bm::cyl_bessel_i(1, x); }, -80, 80},
    {"bessel_j0", [](Wide x) { return bm::cyl_bessel_j(0, x); }, -80, 80, true},
    {"bessel_j1", [](Wide x) { return bm::cyl_bessel_j(1, x); }, -80, 80, true},
    {"bessel_k0", [](Wide x) { return bm::cyl_bessel_k(0, x); }, 0, 80},
    {"bessel_k0e", [](Wide x) { return std::exp(x) * bm::cyl_bessel_k(0, x); }, 0, 80},
    {"bessel_k1", [](Wide x) { return bm::cyl_bessel_k(1, x); }, 0, 80},
    {"bessel_k1e", [](Wide x) { return std::exp(x) * bm::cyl_bessel_k(1, x); }, 0, 80},
    {"bessel_y0", [](Wide x) { return bm::cyl_neumann(0, x); }, 0, 80, true},
    {"bessel_y1", [](Wide x) { return bm::cyl_neumann(1, x); }, 0, 80, true}};

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
  const CalledOp of(f.name);
  const Tensor in = random::uniform({points / f.fewer}, {.seed = 1}, f.low, f.high, dtype_of<T>);
  const std::vector<T> x = in.template to_vector<T>(), y = of(in).template to_vector<T>();
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
  const std::vector<Errors> errors = errors_over_range();
  if (argc > 1 && !std::strcmp(argv[1], "--check")) return check_over_range(errors) > 0;
  const std::int64_t points = argc > 1 ? std::atoll(argv[1]) : 100'000;
  std::puts(
      "# Accuracy of elementwise functions\n\n"
      "Printed by `build/test/accuracy`.\n\n## Values and derivatives over the whole range\n\n"
      "Maximum errors of values, first and second derivatives (by a gradient of a gradient), and where they "
      "are, in units in the last place (ulp). The points are spread by magnitude over the range\n"
      "of f64, for f32 those that it has, of both signs, and denser where the function changes and near its "
      "poles and zeros. The reference values, in test/data/accuracy.txt, were\n"
      "computed by mpmath with as many digits as they need. `scripts/accuracy_values` says near which "
      "changes of sign an error counts relative to the values nearby. Derivatives of\n"
      "sigmoid and tanh are computed from the output, and their errors count relative to 1 "
      "([why](../inside/decisions/elementwise_functions.md)). Below the smallest normal number an error "
      "counts\nrelative to that. A test fails at more than 8 ulp, or at the limit of the second table.\n\n"
      "f16 and bf16 are computed in f32, and every result is rounded once. A derivative that is computed "
      "from "
      "the output, such as those of exp, sqrt, sigmoid and tanh, takes the rounded one:\n"
      "that of tanh is 0 from where tanh(x) rounds to 1, |x| = 4.51 for f16 and 3.47 for bf16. For the "
      "derivatives of f32, convert before the function: `tanh(astype(x, DType::f32))`.\n");
  print_over_range(errors);
  std::puts(
      "\n## Values in an interval\n\n"
      "Maximum errors over random points of an interval: for f32 in ulp, for f64 relative to the value. The "
      "reference values are computed in long double by libm, Boost.Math or numerical\n"
      "integration. Near zeros with a change of sign, errors up to 1e-15 are ignored.\n");
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
