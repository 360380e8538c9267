// Elementary functions against the long double functions of libm, in units in the last place: over the common range, over every
// magnitude, next to the zeros of sine and cosine, and at the ends of the range.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tapedeck/tapedeck.h"

using namespace tapedeck;

namespace {

struct Function {
  const char* name;
  Tensor (*op)(Operand);
  long double (*exact)(long double);
  double low, high;   // where it is mostly used
  double ulps;
};

long double exact_rsqrt(long double x) { return 1 / std::sqrt(x); }
long double exact_sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }

const Function kFunctions[] = {
    {"sqrt", sqrt, std::sqrt, 0, 100, 0.5},     {"rsqrt", rsqrt, exact_rsqrt, 0, 100, 1.5}, {"exp", exp, std::exp, -20, 20, 1.1},
    {"expm1", expm1, std::expm1, -2, 2, 2.5},   {"log", log, std::log, 0, 100, 1},          {"log1p", log1p, std::log1p, -0.99, 10, 1},
    {"sin", sin, std::sin, -100, 100, 3},       {"cos", cos, std::cos, -100, 100, 3},       {"tan", tan, std::tan, -100, 100, 5},
    {"tanh", tanh, std::tanh, -10, 10, 3},      {"sigmoid", sigmoid, exact_sigmoid, -40, 40, 3}};
const Function &kSine = kFunctions[6], &kCosine = kFunctions[7], &kTangent = kFunctions[8];

/// How far y is from the exact value, in units in the last place that T has there.
template <class T> double ulps(T y, long double exact) {
  using Limits = std::numeric_limits<T>;
  const T nearest = static_cast<T>(exact);
  if (std::isnan(nearest) || std::isinf(nearest)) return std::isnan(nearest) ? (std::isnan(y) ? 0 : 1e30) : (y == nearest ? 0 : 1e30);
  int exponent = Limits::min_exponent;
  if (std::fabs(nearest) >= Limits::min()) std::frexp(nearest, &exponent);
  return static_cast<double>(std::fabs(static_cast<long double>(y) - exact) / std::ldexp(1.0L, exponent - Limits::digits));
}

template <class T> void check(const Function& f, const std::vector<T>& x) {
  const std::vector<T> y = f.op(tensor(x)).template to_vector<T>();
  double worst = 0;
  T at = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (const double u = ulps(y[i], f.exact(x[i])); u > worst) worst = u, at = x[i];
  INFO(f.name << " of " << name_of(dtype_of<T>) << " is off by " << worst << " ulp at " << at);
  CHECK(worst <= f.ulps);
}

template <class T> std::vector<T> evenly(double low, double high) { return random::uniform({20000}, {.seed = 1}, low, high, dtype_of<T>).template to_vector<T>(); }
/// Numbers of every magnitude, denormal ones included.
template <class T> std::vector<T> every_magnitude(bool negative_too) {
  std::vector<T> v = random::uniform({20000}, {.seed = 2}, std::numeric_limits<T>::min_exponent - 20, std::numeric_limits<T>::max_exponent, dtype_of<T>).template to_vector<T>();
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = (negative_too && i % 2 ? -1 : 1) * std::exp2(v[i]);
  return v;
}
/// The numbers next to multiples of a quarter turn.
template <class T> std::vector<T> near_quarters(long double count, long double step) {
  std::vector<T> v;
  for (long double k = 1; k < count; k += step) {
    const T x = static_cast<T>(std::floor(k) * 1.57079632679489661923132169163975144L);
    v.insert(v.end(), {x, -std::nextafter(x, T(0)), std::nextafter(x, 2 * x)});
  }
  return v;
}

template <class T> void check_everywhere() {
  for (const Function& f : kFunctions) {
    check(f, evenly<T>(f.low, f.high));
    check(f, every_magnitude<T>(f.low < 0 && std::string(f.name) != "log1p"));
  }
  for (const Function& f : {kSine, kCosine, kTangent}) {
    check(f, near_quarters<T>(600, 1));
    check(f, near_quarters<T>(1e7L, 1234.567L));
    for (const double top : {1e3, 1e4, 1e5, 1e6, 2e7}) check(f, evenly<T>(-top, top));
  }
}

template <class T> void check_ends() {
  using Limits = std::numeric_limits<T>;
  const T inf = Limits::infinity(), largest = Limits::max(), smallest = Limits::denorm_min(), top = std::log(largest), bottom = std::log(smallest);
  for (const Function& f : kFunctions)
    for (const T x : {T(0), inf, -inf, Limits::quiet_NaN(), largest, -largest, Limits::min(), smallest, -smallest, T(1), T(-1), std::nextafter(T(-1), T(0)), T(-2),
                      top, std::nextafter(top, inf), std::nextafter(top, T(0)), bottom, bottom + 1, -top, -top - 1}) {
      const T y = f.op(tensor(std::vector<T>{x})).template item<T>();
      INFO(f.name << " of " << name_of(dtype_of<T>) << " at " << x << " is " << y);
      CHECK(ulps(y, f.exact(x)) <= f.ulps);
    }
}

}  // namespace

TEST_CASE("elementary functions are right to a few units in the last place", "[elementary]") {
  check_everywhere<float>();
  check_everywhere<double>();
}

TEST_CASE("elementary functions at the ends of their ranges", "[elementary]") {
  check_ends<float>();
  check_ends<double>();
}

TEST_CASE("a large angle does not change its neighbours", "[elementary]") {
  const Tensor x = tensor({0.5, 1.5, -2.5, 40.0, 700.0, 1e3, 3.0, 7.0}), large = tensor({0.5, 1.5, -2.5, 40.0, 700.0, 1e12, 3.0, 7.0});
  for (const Function& f : {kSine, kCosine, kTangent}) {
    std::vector<float> a = f.op(x).to_vector<float>(), b = f.op(large).to_vector<float>();
    a[5] = b[5] = 0;
    CHECK(a == b);
  }
}
