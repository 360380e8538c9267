// Derivatives of programs of scalars, compared with closed forms and with the same lambdas on Tensors.
#include "tapedeck/scalars.h"

#include <catch2/catch.hpp>
#include <limits>
#include <stdexcept>

#include "tapedeck/gradients.h"
#include "tapedeck/tapedeck.h"

namespace scalars_test {

namespace {

namespace td = tapedeck;
namespace scalars = td::scalars;
using scalars::Mode;
using Two = std::array<double, 2>;

// f(x, y) = x² sin y, whose derivatives are known.
constexpr auto wave = [](const auto& v) { return v[0] * v[0] * sin(v[1]); };
const Two kAt = {1.5, 0.7};
const double kSine = std::sin(0.7), kCosine = std::cos(0.7);

template <class X, class Y> void check_close(const X& x, const Y& y) {
  for (std::size_t i = 0; i < y.size(); ++i)
    CHECK(x[i] == Approx(y[i]).epsilon(1e-13));
}

// The second derivative of f by all combinations of modes, within each other.
template <Mode outer, Mode inner, class F> double second(const F& f, double x) {
  return scalars::gradient<outer>([&f](const auto& z) { return scalars::gradient<inner>(f, z); }, x);
}

}   // namespace

TEST_CASE("gradients of programs of scalars", "[scalars]") {
  const Two expected = {2 * 1.5 * kSine, 1.5 * 1.5 * kCosine};
  check_close(scalars::gradient(wave, kAt), expected);
  check_close(scalars::gradient<Mode::forward>(wave, kAt), expected);
  CHECK(scalars::value(wave, kAt) == Approx(2.25 * kSine).epsilon(1e-14));
  const auto [value, gradient] = scalars::value_and_gradient(wave, kAt);
  CHECK(value == Approx(2.25 * kSine).epsilon(1e-14));
  check_close(gradient, expected);
  const auto [y, dy] = scalars::jvp(wave, kAt, Two{0.5, -2.0});
  CHECK(y == value);
  CHECK(dy == Approx(0.5 * expected[0] - 2 * expected[1]).epsilon(1e-13));
}

TEST_CASE("scalars of f32 stay f32", "[scalars]") {
  const auto g = scalars::gradient([](auto x) { return 3 * x * x + 0.1; }, 2.0F);
  STATIC_REQUIRE(std::same_as<decltype(g), const float>);
  CHECK(g == 12.0F);
}

TEST_CASE("more inputs than tangents are carried at once", "[scalars]") {
  std::array<double, 19> x, expected;
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = 0.1 * static_cast<double>(i + 1), expected[i] = 2 * x[i];
  const auto squares = [](const auto& v) {
    auto sum = v[0] * v[0];
    for (std::size_t i = 1; i < v.size(); ++i)
      sum += v[i] * v[i];
    return sum;
  };
  check_close(scalars::gradient<Mode::forward>(squares, x), expected);
  check_close(scalars::gradient(squares, x), expected);
  const auto h = scalars::hessian(squares, x);
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j)
      CHECK(h[i][j] == (i == j ? 2 : 0));
}

TEST_CASE("jacobians and Hessians of scalars", "[scalars]") {
  const auto polar = [](const auto& v) { return std::array{v[0] * cos(v[1]), v[0] * sin(v[1]), v[0]}; };
  const auto forward = scalars::jacobian(polar, kAt), reverse = scalars::jacobian<Mode::reverse>(polar, kAt);
  const Two rows[] = {{kCosine, -1.5 * kSine}, {kSine, 1.5 * kCosine}, {1, 0}};
  for (std::size_t k = 0; k < 3; ++k) {
    check_close(forward[k], rows[k]);
    check_close(reverse[k], rows[k]);
  }
  const auto h = scalars::hessian(wave, kAt);
  check_close(h[0], Two{2 * kSine, 3 * kCosine});
  check_close(h[1], Two{3 * kCosine, -2.25 * kSine});
}

TEST_CASE("derivatives of derivatives in all modes", "[scalars]") {
  // The second derivatives, by the functions' partials of second order; those of Tensors are ops.
  const auto check = [](const auto& f, double x) {
    const td::Tensor at = td::tensor(x, td::DType::f64);
    const auto first = [&](const td::Tensor& z) { return td::grad(f, z).dense(); };
    const double expected = td::grad(first, at).dense().item();
    CHECK(second<Mode::reverse, Mode::reverse>(f, x) == Approx(expected).epsilon(1e-11));
    CHECK(second<Mode::reverse, Mode::forward>(f, x) == Approx(expected).epsilon(1e-11));
    CHECK(second<Mode::forward, Mode::reverse>(f, x) == Approx(expected).epsilon(1e-11));
    CHECK(second<Mode::forward, Mode::forward>(f, x) == Approx(expected).epsilon(1e-11));
    CHECK(scalars::gradient(f, x) == Approx(td::grad(f, at).dense().item()).epsilon(1e-11));
    CHECK(scalars::value(f, x) == Approx(f(at).item()).epsilon(1e-12));
  };
  check([](const auto& x) { return 1 / (1 + x * x) - x / 3; }, 0.7);
  check([](const auto& x) { return square(x) + squared_difference(x, 0.2) * reciprocal(x); }, 0.7);
  check([](const auto& x) { return sqrt(x) + rsqrt(x) + cbrt(x) + pow(x, 2.5) + pow(1.5, x); }, 0.7);
  check([](const auto& x) { return exp(x) + exp2(x) + expm1(x) + log(x) + log1p(x) + log2(x) + log10(x); },
        0.7);
  check([](const auto& x) { return logaddexp(x, 2 * x) + hypot(x, x * x) + atan2(x, 1 + x * x); }, 0.7);
  check([](const auto& x) { return sin(x) + cos(x) + tan(x) + asin(x) + acos(x) + atan(x); }, 0.7);
  check([](const auto& x) { return sinh(x) + cosh(x) + tanh(x) + asinh(x) + acosh(1 + x) + atanh(x); }, 0.7);
  check([](const auto& x) { return sigmoid(x) + log_sigmoid(x) + softplus(x) + erf(x) + erfc(x); }, 0.7);
  check([](const auto& x) { return relu(x) * x + abs(x) * x * x + maximum(x, 0.5) * minimum(x * x, 2.0); },
        0.7);
  check([](const auto& x) { return clip(x, 0.0, 1.0) * x + sign(x) * x * x + floor(x) * x; }, 0.7);
}

TEST_CASE("branches and loops of scalars follow values", "[scalars]") {
  const auto root = [](const auto& a) {   // Newton's iteration
    auto x = a;
    while (abs(x * x - a) > 1e-14)
      x = 0.5 * (x + a / x);
    return x;
  };
  CHECK(scalars::derivative(root, 2.0) == Approx(0.5 / std::sqrt(2.0)).epsilon(1e-12));
  CHECK(scalars::gradient(root, 2.0) == Approx(0.5 / std::sqrt(2.0)).epsilon(1e-12));
  const auto kinked = [](const auto& x) {
    if (x < 0) return -x;
    return 2 * x;
  };
  CHECK(scalars::gradient(kinked, -1.0) == -1);
  CHECK(scalars::gradient(kinked, 1.0) == 2);
}

TEST_CASE("unselected and unused values add nothing", "[scalars]") {
  const auto safe = [](const auto& x) { return where(x > 0, sqrt(x), 0 * x); };
  CHECK(scalars::gradient(safe, 0.0) == 0);
  CHECK(scalars::gradient<Mode::forward>(safe, 0.0) == 0);
  const auto steep =
      scalars::gradient<Mode::forward>([](const auto& v) { return sqrt(v[0]) + v[1]; }, Two{0, 2});
  CHECK(steep[0] == std::numeric_limits<double>::infinity());
  CHECK(steep[1] == 1);
  CHECK(scalars::gradient([](const auto&) { return 3.0; }, 1.0) == 0);
  CHECK(scalars::gradient<Mode::forward>([](const auto&) { return 3.0; }, 1.0) == 0);
}

// As the gradients of ops: 0 times infinity is NaN, and what is not chosen adds nothing.
TEST_CASE("infinite derivatives are the same in both modes", "[scalars]") {
  const auto same = [](const auto& f, double x, double expected) {
    for (const double d : {scalars::gradient(f, x), scalars::gradient<Mode::forward>(f, x)})
      CHECK((std::isnan(expected) ? std::isnan(d) : d == expected));
  };
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  same([](const auto& x) { return sqrt(x) * 0 + x; }, 0, nan);
  same([](const auto& x) { return sqrt(x * 0); }, 0, nan);
  same([](const auto& x) { return sqrt(x) - sqrt(x); }, 0, nan);
  same(
      [](const auto& x) {
        const auto s = sqrt(x);
        return s - s + x;
      },
      0, nan);
  same([](const auto& x) { return sqrt(x) + x; }, 0, infinity);
  same([](const auto& x) { return where(x > 0, sqrt(x), x); }, 0, 1);
  same([](const auto& x) { return maximum(x, sqrt(x) - 1); }, 0, 1);
  same(
      [](const auto& x) {
        const auto unused = log(x);
        return unused > 1 ? unused : x;
      },
      0, 1);
  const auto slope = [](const auto& x) {
    return scalars::derivative([](const auto& y) { return where(y > 0, sqrt(y), y); }, x);
  };
  same(slope, 0, 0);
}

TEST_CASE("a nested derivative sees outer numbers as constants", "[scalars]") {
  // d/dx (x · d/dy (x + y) at y = 1) is 1, the example of perturbation confusion.
  const auto f = [](const auto& x) {
    using S = std::remove_cvref_t<decltype(x)>;
    return x * scalars::derivative([&x](const auto& y) { return x + y; }, S(1));
  };
  CHECK(scalars::derivative(f, 1.0) == 1);
  CHECK(scalars::gradient(f, 1.0) == 1);
}

TEST_CASE("long programs of scalars, and programs that throw", "[scalars]") {
  const auto power = [](const auto& x) {
    auto y = x;
    for (int i = 1; i < 100'000; ++i)
      y = y * x;
    return y;
  };
  CHECK(scalars::gradient(power, 1.0) == 100'000);
  const auto failing = [](const auto& x) {
    if (x > 0) throw std::runtime_error("no");
    return x;
  };
  CHECK_THROWS_AS(scalars::gradient(failing, 1.0), std::runtime_error);
  CHECK(scalars::gradient(power, 1.0) == 100'000);
}

}   // namespace scalars_test
