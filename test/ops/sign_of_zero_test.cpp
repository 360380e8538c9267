// The sign of zero: negation changes it, whatever the instruction set and the number of elements.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <limits>

#include "tapedeck/compile.h"
#include "tapedeck/map.h"
#include "tapedeck/tapedeck.h"

namespace sign_of_zero_test {

using namespace tapedeck;

namespace {

constexpr DType kReal[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

/// Whether all elements are zeros of this sign.
bool all_zeros(const Tensor& x, bool negative) {
  const std::vector<double> v = x.to_vector();
  return std::all_of(v.begin(), v.end(), [&](double e) { return e == 0 && std::signbit(e) == negative; });
}

template <class F> void for_zeros(const F& f) {
  for (const DType dtype : kReal)
    for (const std::int64_t n : {1, 3, 16, 64, 1000})
      for (const bool negative : {false, true}) {
        INFO(name_of(dtype) << ", " << n << " elements, " << (negative ? "-0" : "0"));
        f(full({n}, negative ? -0.0 : 0.0, dtype), negative);
      }
}

Tensor gradient_of(const auto& f, const Tensor& x, const Tensor& dy) {
  GradientTape tape;
  tape.watch(x);
  const std::vector<Tensor> y = {f(x)}, sources = {x}, cotangents = {dy};
  return tape.gradient(Targets(y), Sources(sources), {.output_gradients = cotangents})[0].dense();
}

}   // namespace

TEST_CASE("neg flips the sign of zero, and 0 - x does not", "[sign_of_zero]") {
  for_zeros([](const Tensor& x, bool negative) {
    CHECK(all_zeros(neg(x), !negative));
    CHECK(all_zeros(-x, !negative));
    CHECK(all_zeros(0 - x, false));
    CHECK(all_zeros(x * -1.0, !negative));
    CHECK((1 / neg(x)).at({0}) == (negative ? 1 : -1) * std::numeric_limits<double>::infinity());
  });
  CHECK(std::isnan(neg(tensor(std::nan(""))).item()));
  for (const DType dtype : {DType::c64, DType::c128})
    for (const std::int64_t n : {1, 64}) {
      const Tensor z = -astype(complex(full({n}, 0.0, DType::f64), full({n}, -0.0, DType::f64)), dtype);
      for (const auto& e : z.to_vector<std::complex<double>>())
        CHECK((std::signbit(e.real()) && !std::signbit(e.imag())));
    }
}

TEST_CASE("unary minus in a user's function of elements flips the sign of zero", "[sign_of_zero][map]") {
  const auto minus = [](const Tensor& t) { return map([](auto x) { return -x; }, t); };
  const auto product = [](const Tensor& t) { return map([](auto x) { return -x * x; }, t); };
  const auto difference = [](const Tensor& t) { return map([](auto x) { return 0 - x; }, t); };
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 3, 16, 64, 1000})
      for (const bool negative : {false, true}) {
        const Tensor x = full({n}, negative ? -0.0 : 0.0, dtype);
        CHECK(all_zeros(minus(x), !negative));
        CHECK(all_zeros(product(x), true));
        CHECK(all_zeros(difference(x), false));
      }
}

TEST_CASE("gradients through neg and the second operand of sub negate zeros", "[sign_of_zero][recorded]") {
  for_zeros([](const Tensor& dy, bool negative) {
    const Tensor x = ones(dy.shape(), dy.dtype());
    const auto by_neg = [](const Tensor& v) { return neg(v); };
    const auto by_sub = [](const Tensor& v) { return 2 - v; };
    CHECK(all_zeros(gradient_of(by_neg, x, dy), !negative));
    CHECK(all_zeros(gradient_of(by_sub, x, dy), !negative));
    const auto recorded = compile([&](const Tensor& v, const Tensor& g) {
      return gradient_of(by_neg, v, g) * gradient_of(by_sub, v, g * 1);
    });
    const auto parts =
        compile([&](const Tensor& v, const Tensor& g) { return gradient_of(by_sub, v * 1, g * 1); });
    recorded(x, dy + 1);
    parts(x, dy + 1);
    CHECK(all_zeros(recorded(x, dy), false));
    CHECK(all_zeros(parts(x, dy), !negative));
  });
}

TEST_CASE("roundings keep the sign of zero", "[sign_of_zero]") {
  for_zeros([](const Tensor& x, bool negative) {
    for (const Tensor& y : {floor(x), ceil(x), trunc(x), round(x), rint(x)})
      CHECK(all_zeros(y, negative));
    CHECK(all_zeros(ceil(x - 0.25), true));
    CHECK(all_zeros(trunc(x - 0.25), true));
  });
}

// Compiled for the program's instructions, which may be fewer than the library's.
TEST_CASE("functions of elements keep the sign of zero in a user's function", "[sign_of_zero][map]") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 3, 16, 64, 1000})
      for (const bool negative : {false, true}) {
        INFO(name_of(dtype) << ", " << n << " elements");
        const Tensor x = full({n}, negative ? -0.0 : 0.0, dtype);
        const auto check = [&](const auto& f) { CHECK(all_zeros(map(f, x), negative)); };
        check([](auto v) { return floor(v); });
        check([](auto v) { return ceil(v); });
        check([](auto v) { return trunc(v); });
        check([](auto v) { return round(v); });
        check([](auto v) { return sin(v); });
        check([](auto v) { return tan(v); });
        check([](auto v) { return sinh(v); });
        check([](auto v) { return tanh(v); });
        check([](auto v) { return asin(v); });
        check([](auto v) { return atan(v); });
        check([](auto v) { return asinh(v); });
        check([](auto v) { return atanh(v); });
        check([](auto v) { return expm1(v); });
        check([](auto v) { return log1p(v); });
        check([](auto v) { return cbrt(v); });
        check([](auto v) { return erf(v); });
        check([](auto v) { return sqrt(v); });
        CHECK(all_zeros(map([](auto v) { return ceil(v - 0.25); }, x), true));
        CHECK(all_zeros(map([](auto v) { return round(v - 0.25); }, x), true));
      }
}

}   // namespace sign_of_zero_test
