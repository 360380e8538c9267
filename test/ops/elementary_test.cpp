// Elementary and error functions compared with libm's long double functions, in units in the last place: over
// the common range, over all magnitudes, next to the zeros of sine and cosine, and at the ends of the range.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tapedeck/tapedeck.h"

namespace elementary_test {

using namespace tapedeck;

namespace {

struct Measured {
  const char* name;
  Tensor (*op)(Operand);
  long double (*exact)(long double);
  double low, high;   // the common range
  double ulps;
};

long double exact_rsqrt(long double x) { return 1 / std::sqrt(x); }
long double exact_sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }

long double exact_gelu(long double x) { return x * std::erfc(-x * std::sqrt(0.5L)) / 2; }
Tensor exact_form_of_gelu(Operand x) { return gelu(x); }

long double exact_log_sigmoid(long double x) {
  return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x));
}

const Measured kFunctions[] = {{"sqrt", sqrt, std::sqrt, 0, 100, 0.5},
                               {"rsqrt", rsqrt, exact_rsqrt, 0, 100, 1.5},
                               {"exp", exp, std::exp, -20, 20, 1.1},
                               {"expm1", expm1, std::expm1, -2, 2, 2.5},
                               {"log", log, std::log, 0, 100, 1},
                               {"log1p", log1p, std::log1p, -0.99, 10, 1},
                               {"sin", sin, std::sin, -100, 100, 3},
                               {"cos", cos, std::cos, -100, 100, 3},
                               {"tan", tan, std::tan, -100, 100, 5},
                               {"tanh", tanh, std::tanh, -10, 10, 3},
                               {"sigmoid", sigmoid, exact_sigmoid, -40, 40, 3},
                               {"cbrt", cbrt, std::cbrt, -100, 100, 4},
                               {"exp2", exp2, std::exp2, -20, 20, 1.5},
                               {"log2", log2, std::log2, 0, 100, 1.5},
                               {"log10", log10, std::log10, 0, 100, 2},
                               {"asin", asin, std::asin, -1, 1, 1},
                               {"acos", acos, std::acos, -1, 1, 1},
                               {"atan", atan, std::atan, -10, 10, 1},
                               {"sinh", sinh, std::sinh, -10, 10, 4},
                               {"cosh", cosh, std::cosh, -10, 10, 3},
                               {"asinh", asinh, std::asinh, -10, 10, 2},
                               {"acosh", acosh, std::acosh, 1, 100, 2},
                               {"atanh", atanh, std::atanh, -1, 1, 2},
                               {"log_sigmoid", log_sigmoid, exact_log_sigmoid, -40, 40, 4},
                               {"erf", erf, std::erf, -4, 4, 1.5},
                               {"erfc", erfc, std::erfc, -4, 12, 2.5}};
const Measured kGelu = {"gelu", exact_form_of_gelu, exact_gelu, -15, 5, 5};
const Measured &kSine = kFunctions[6], &kCosine = kFunctions[7], &kTangent = kFunctions[8];

/// The distance of y from the exact value, in units in the last place of T at this value.
template <class T> double ulps(T y, long double exact) {
  using Limits = std::numeric_limits<T>;
  const T nearest = static_cast<T>(exact);
  if (std::isnan(nearest) || std::isinf(nearest))
    return std::isnan(nearest) ? (std::isnan(y) ? 0 : 1e30) : (y == nearest ? 0 : 1e30);
  int exponent = Limits::min_exponent;
  if (std::fabs(nearest) >= Limits::min()) std::frexp(nearest, &exponent);
  return static_cast<double>(std::fabs(static_cast<long double>(y) - exact) /
                             std::ldexp(1.0L, exponent - Limits::digits));
}

template <class T> void check(const Measured& f, const std::vector<T>& x) {
  const std::vector<T> y = f.op(tensor(x)).template to_vector<T>();
  double worst = 0;
  T at = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (const double u = ulps(y[i], f.exact(x[i])); u > worst) worst = u, at = x[i];
  INFO(f.name << " of " << name_of(dtype_of<T>) << " is off by " << worst << " ulp at " << at);
  CHECK(worst <= f.ulps);
}

template <class T> std::vector<T> evenly(double low, double high) {
  return random::uniform({20000}, {.seed = 1}, low, high, dtype_of<T>).template to_vector<T>();
}
/// Numbers of every magnitude, including denormal ones.
template <class T> std::vector<T> every_magnitude(bool negative_too) {
  std::vector<T> v = random::uniform({20000}, {.seed = 2}, std::numeric_limits<T>::min_exponent - 20,
                                     std::numeric_limits<T>::max_exponent, dtype_of<T>)
                         .template to_vector<T>();
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = (negative_too && i % 2 ? -1 : 1) * std::exp2(v[i]);
  return v;
}
/// The numbers next to multiples of π/2.
template <class T> std::vector<T> near_quarters(long double count, long double step) {
  std::vector<T> v;
  for (long double k = 1; k < count; k += step) {
    const T x = static_cast<T>(std::floor(k) * 1.57079632679489661923132169163975144L);
    v.insert(v.end(), {x, -std::nextafter(x, T(0)), std::nextafter(x, 2 * x)});
  }
  return v;
}

template <class T> void check_everywhere() {
  for (const Measured& f : kFunctions) {
    check(f, evenly<T>(f.low, f.high));
    check(f, every_magnitude<T>(f.low < 0 && std::string(f.name) != "log1p"));
  }
  for (const Measured& f : {kSine, kCosine, kTangent}) {
    check(f, near_quarters<T>(600, 1));
    check(f, near_quarters<T>(1e7L, 1234.567L));
    for (const double top : {1e3, 1e4, 1e5, 1e6, 2e7})
      check(f, evenly<T>(-top, top));
  }
}

template <class T> void check_ends() {
  using Limits = std::numeric_limits<T>;
  const T inf = Limits::infinity(), largest = Limits::max(), smallest = Limits::denorm_min(),
          top = std::log(largest), bottom = std::log(smallest);
  for (const Measured& f : kFunctions)
    for (const T x : {T(0),
                      inf,
                      -inf,
                      Limits::quiet_NaN(),
                      largest,
                      -largest,
                      Limits::min(),
                      smallest,
                      -smallest,
                      T(1),
                      T(-1),
                      std::nextafter(T(-1), T(0)),
                      T(-2),
                      top,
                      std::nextafter(top, inf),
                      std::nextafter(top, T(0)),
                      bottom,
                      bottom + 1,
                      -top,
                      -top - 1}) {
      const T y = f.op(tensor(std::vector<T>{x})).template item<T>();
      INFO(f.name << " of " << name_of(dtype_of<T>) << " at " << x << " is " << y);
      CHECK(ulps(y, f.exact(x)) <= f.ulps);
    }
}

}   // namespace

TEST_CASE("elementary functions are right to a few units in the last place", "[elementary]") {
  check_everywhere<float>();
  check_everywhere<double>();
}

TEST_CASE("elementary functions at the ends of their ranges", "[elementary]") {
  check_ends<float>();
  check_ends<double>();
}

namespace {

struct OfTwo {
  const char* name;
  Tensor (*op)(Operand, Operand);
  long double (*exact)(long double, long double);
  double ulps;
};

long double exact_logaddexp(long double a, long double b) {
  return a == b ? a + std::log(2.0L) : std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}
long double exact_floor_mod(long double a, long double b) {
  const long double r = std::fmod(a, b);
  return r == 0 ? std::copysign(0.0L, b) : (r < 0) != (b < 0) ? r + b : r;
}
template <class T> long double next(long double a, long double b) {
  return std::nextafter(static_cast<T>(a), static_cast<T>(b));
}

template <class T> std::vector<OfTwo> of_two() {
  std::vector<OfTwo> all = {{"atan2", atan2, std::atan2, 1},
                            {"hypot", hypot, std::hypot, 1},
                            {"pow", pow, std::pow, 1},
                            {"floor_mod", floor_mod, exact_floor_mod, 0.51},
                            {"nextafter", nextafter, next<T>, 0}};
  if (sizeof(T) == 4)
    all.push_back({"logaddexp", logaddexp, exact_logaddexp,
                   1});   // not in f64: next to 0 the reference has too few digits
  return all;
}

template <class T> void check_of_two(const std::vector<T>& a, const std::vector<T>& b) {
  for (const OfTwo& f : of_two<T>()) {
    const std::vector<T> y = f.op(tensor(a), tensor(b)).template to_vector<T>();
    double worst = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const T exact = static_cast<T>(f.exact(a[i], b[i]));
      const double u =
          exact == 0 && std::signbit(exact) != std::signbit(y[i]) ? 1e30 : ulps(y[i], f.exact(a[i], b[i]));
      if (u > worst) worst = u, at = i;
    }
    INFO(f.name << " of " << name_of(dtype_of<T>) << " is off by " << worst << " ulp at " << a[at] << ", "
                << b[at] << ": " << y[at]);
    CHECK(worst <= f.ulps);
  }
}

template <class T> void check_of_two() {
  using Limits = std::numeric_limits<T>;
  const std::vector<T> a = evenly<T>(-50, 50), many = every_magnitude<T>(true);
  check_of_two(a, std::vector<T>(a.rbegin(), a.rend()));
  check_of_two(many, std::vector<T>(many.rbegin(), many.rend()));
  check_of_two(many, a);
  const T ends[] = {0,
                    -T(0),
                    1,
                    -1,
                    0.5,
                    3,
                    -3,
                    Limits::infinity(),
                    -Limits::infinity(),
                    Limits::quiet_NaN(),
                    Limits::max(),
                    Limits::lowest(),
                    Limits::min(),
                    Limits::denorm_min(),
                    -Limits::denorm_min(),
                    std::nextafter(T(1), T(0)),
                    std::nextafter(T(1), T(2))};
  std::vector<T> x, y;
  for (const T u : ends)
    for (const T v : ends)
      x.push_back(u), y.push_back(v);
  check_of_two(x, y);
}

/// y with a canonical NaN, since the sign and payload of NaN do not matter.
template <class T> std::vector<T> numbers_of(const Tensor& y) {
  std::vector<T> v = y.to_vector<T>();
  for (T& e : v)
    if (std::isnan(e)) e = 12345;
  return v;
}

template <class T> void check_neighbours() {
  std::vector<T> x = every_magnitude<T>(true), near = evenly<T>(-2, 12);
  for (std::size_t i = 0; i < x.size(); i += 3)
    x[i] = near[i];
  const Tensor a = tensor(x), backwards = reverse(a, 0), b = roll(a, 5, 0);
  for (const Measured& f : kFunctions) {
    INFO(f.name);
    CHECK(numbers_of<T>(reverse(f.op(backwards), 0)) == numbers_of<T>(f.op(a)));
  }
  CHECK(numbers_of<T>(reverse(gelu(backwards), 0)) == numbers_of<T>(gelu(a)));
  for (const OfTwo& f : of_two<T>()) {
    INFO(f.name);
    CHECK(numbers_of<T>(reverse(f.op(backwards, reverse(b, 0)), 0)) == numbers_of<T>(f.op(a, b)));
  }
}

}   // namespace

TEST_CASE(
    "elementary functions of two numbers are right to a few units in the last place, also at the ends of "
    "their ranges",
    "[elementary]") {
  check_of_two<float>();
  check_of_two<double>();
}

TEST_CASE("the result for an element does not depend on its position or its neighbours", "[elementary]") {
  check_neighbours<float>();
  check_neighbours<double>();
}

TEST_CASE("gelu of f32 is right in its tail", "[elementary]") {
  check(kGelu, evenly<float>(kGelu.low, kGelu.high));
  check(kGelu, every_magnitude<float>(true));
}

// x⁰ is 1 everywhere, and polynomials whose coefficients meet tensors of exponents have derivatives at 0.
TEST_CASE("powers have derivatives at 0", "[elementary]") {
  const Tensor exponents = tensor({0, 1, 2, 3}, DType::f64);
  for (const DType t : {DType::f64, DType::c128}) {
    const auto powers = [&](const Tensor& x) { return pow(x, astype(exponents, t)); };
    const Tensor x = zeros({4}, t);
    CHECK(real(grad(powers, x).dense()).to_vector() == std::vector<double>{0, 1, 0, 0});
    const auto slopes = [&](const Tensor& at) { return grad(powers, at).dense(); };
    CHECK(real(grad(slopes, x).dense()).to_vector() == std::vector<double>{0, 0, 2, 0});
  }
  const Tensor tangent =
      jvp([&](const Tensor& x) { return pow(x, exponents); }, zeros({4}, DType::f64), ones({4}, DType::f64));
  CHECK(tangent.to_vector() == std::vector<double>{0, 1, 0, 0});
}

TEST_CASE("logarithms of powers of their base are integers", "[elementary]") {
  CHECK(log2(tensor({1.0, 8.0, 1024.0, 0.25})).to_vector() == std::vector<double>{0, 3, 10, -2});
  CHECK(log10(tensor({1.0, 10.0, 1000.0, 1e15})).to_vector() == std::vector<double>{0, 1, 3, 15});
  CHECK(exp2(tensor({-3.0, 0.0, 5.0, 10.0})).to_vector() == std::vector<double>{0.125, 1, 32, 1024});
}

TEST_CASE("a large angle does not change its neighbours", "[elementary]") {
  const Tensor x = tensor({0.5, 1.5, -2.5, 40.0, 700.0, 1e3, 3.0, 7.0}),
               large = tensor({0.5, 1.5, -2.5, 40.0, 700.0, 1e12, 3.0, 7.0});
  for (const Measured& f : {kSine, kCosine, kTangent}) {
    std::vector<float> a = f.op(x).to_vector<float>(), b = f.op(large).to_vector<float>();
    a[5] = b[5] = 0;
    CHECK(a == b);
  }
}

}   // namespace elementary_test
