// Scalar: one number, with the functions that SIMD batches have. Programs of scalars compute with it, and
// partials.h defines its derivatives like those of batches.
#pragma once
#include <cmath>
#include <concepts>
#include <type_traits>

namespace tapedeck {

/// A plain number of f32 or f64. Other numbers in an expression are converted to its type. Its comparisons
/// return bool.
template <std::floating_point T> struct Scalar {
  using value_type = T;

  T value = 0;

  constexpr Scalar() = default;
  template <class Number>
  requires std::is_arithmetic_v<Number>
  constexpr Scalar(Number number) : value(static_cast<T>(number)) {}
  constexpr explicit operator T() const { return value; }
};

namespace detail {

template <class X> inline constexpr bool kIsScalar = false;
template <class T> inline constexpr bool kIsScalar<Scalar<T>> = true;
/// Two operands, one of which may be a plain number.
template <class X, class Y>
inline constexpr bool kAreScalars = (kIsScalar<X> && (std::same_as<X, Y> || std::is_arithmetic_v<Y>)) ||
                                    (std::is_arithmetic_v<X> && kIsScalar<Y>);
template <class X, class Y>
concept Scalars = kAreScalars<X, Y>;
template <class X, class Y> using ScalarOf = std::conditional_t<kIsScalar<X>, X, Y>;
template <class X, class Y> constexpr auto values(const X& x, const Y& y) {
  using S = ScalarOf<X, Y>;
  struct Pair {
    typename S::value_type a, b;
  };
  return Pair{S(x).value, S(y).value};
}

template <class T> Scalar<T> fma(const Scalar<T>& a, const Scalar<T>& b, const Scalar<T>& c) {
  return std::fma(a.value, b.value, c.value);
}
template <class T> Scalar<T> smaller(const Scalar<T>& a, const Scalar<T>& b) {
  return a.value < b.value ? a : b;
}
template <class T> Scalar<T> larger(const Scalar<T>& a, const Scalar<T>& b) {
  return a.value > b.value ? a : b;
}
/// x² - square, where square is x² rounded.
template <class T> Scalar<T> rest_of_square(const Scalar<T>& x, const Scalar<T>& square) {
  return std::fma(x.value, x.value, -square.value);
}

}   // namespace detail

// Arithmetic.
template <class T> constexpr Scalar<T> operator-(const Scalar<T>& x) { return -x.value; }
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr detail::ScalarOf<X, Y> operator+(const X& x, const Y& y) {
  const auto v = detail::values(x, y);
  return v.a + v.b;
}
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr detail::ScalarOf<X, Y> operator-(const X& x, const Y& y) {
  const auto v = detail::values(x, y);
  return v.a - v.b;
}
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr detail::ScalarOf<X, Y> operator*(const X& x, const Y& y) {
  const auto v = detail::values(x, y);
  return v.a * v.b;
}
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr detail::ScalarOf<X, Y> operator/(const X& x, const Y& y) {
  const auto v = detail::values(x, y);
  return v.a / v.b;
}
template <class T, class Y>
requires std::convertible_to<Y, Scalar<T>>
constexpr Scalar<T>& operator+=(Scalar<T>& x, const Y& y) { return x = x + y; }
template <class T, class Y>
requires std::convertible_to<Y, Scalar<T>>
constexpr Scalar<T>& operator-=(Scalar<T>& x, const Y& y) { return x = x - y; }
template <class T, class Y>
requires std::convertible_to<Y, Scalar<T>>
constexpr Scalar<T>& operator*=(Scalar<T>& x, const Y& y) { return x = x * y; }
template <class T, class Y>
requires std::convertible_to<Y, Scalar<T>>
constexpr Scalar<T>& operator/=(Scalar<T>& x, const Y& y) { return x = x / y; }
template <class T> constexpr Scalar<T> square(const Scalar<T>& x) { return x * x; }
template <class T> constexpr Scalar<T> reciprocal(const Scalar<T>& x) { return 1 / x; }
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr detail::ScalarOf<X, Y> squared_difference(const X& x, const Y& y) { return square(x - y); }

// Comparisons and choices.
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr bool operator<(const X& x, const Y& y) {
  const auto v = detail::values(x, y);
  return v.a < v.b;
}
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr bool operator<=(const X& x, const Y& y) {
  const auto v = detail::values(x, y);
  return v.a <= v.b;
}
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr bool operator>(const X& x, const Y& y) { return y < x; }
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr bool operator>=(const X& x, const Y& y) { return y <= x; }
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr bool operator==(const X& x, const Y& y) {
  const auto v = detail::values(x, y);
  return v.a == v.b;
}
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr bool equal(const X& x, const Y& y) { return x == y; }
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr bool not_equal(const X& x, const Y& y) { return !(x == y); }
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr bool less(const X& x, const Y& y) { return x < y; }
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr bool less_equal(const X& x, const Y& y) { return x <= y; }
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr bool greater(const X& x, const Y& y) { return x > y; }
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr bool greater_equal(const X& x, const Y& y) { return x >= y; }
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr detail::ScalarOf<X, Y> where(bool condition, const X& x, const Y& y) {
  const auto v = detail::values(x, y);
  return condition ? v.a : v.b;
}
/// NaN if either is NaN.
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr detail::ScalarOf<X, Y> maximum(const X& x, const Y& y) {
  const auto v = detail::values(x, y);
  return v.a >= v.b || v.a != v.a ? v.a : v.b;
}
template <class X, class Y>
requires detail::Scalars<X, Y>
constexpr detail::ScalarOf<X, Y> minimum(const X& x, const Y& y) {
  const auto v = detail::values(x, y);
  return v.a <= v.b || v.a != v.a ? v.a : v.b;
}
template <class T, class Low, class High>
constexpr Scalar<T> clip(const Scalar<T>& x, const Low& low, const High& high) {
  return minimum(maximum(x, low), high);
}
template <class T> constexpr Scalar<T> relu(const Scalar<T>& x) { return maximum(x, 0); }
/// -1, 0 or 1; ±0 and NaN are returned unchanged.
template <class T> constexpr Scalar<T> sign(const Scalar<T>& x) {
  return x.value > 0 ? T(1) : x.value < 0 ? T(-1) : x.value;
}
/// a / b, or 0 if b is 0.
template <class T> constexpr Scalar<T> div_no_nan(const Scalar<T>& a, const Scalar<T>& b) {
  return b.value == 0 ? T(0) : a.value / b.value;
}
template <class T> Scalar<T> abs(const Scalar<T>& x) { return std::abs(x.value); }

// Rounding.
template <class T> Scalar<T> floor(const Scalar<T>& x) { return std::floor(x.value); }
template <class T> Scalar<T> ceil(const Scalar<T>& x) { return std::ceil(x.value); }
template <class T> Scalar<T> trunc(const Scalar<T>& x) { return std::trunc(x.value); }
template <class T> Scalar<T> nearbyint(const Scalar<T>& x) { return std::nearbyint(x.value); }
template <class T> Scalar<T> round(const Scalar<T>& x) { return nearbyint(x); }

// Powers, exponentials and logarithms.
template <class T> Scalar<T> sqrt(const Scalar<T>& x) { return std::sqrt(x.value); }
template <class T> Scalar<T> rsqrt(const Scalar<T>& x) { return 1 / std::sqrt(x.value); }
template <class T> Scalar<T> cbrt(const Scalar<T>& x) { return std::cbrt(x.value); }
template <class T> Scalar<T> exp(const Scalar<T>& x) { return std::exp(x.value); }
template <class T> Scalar<T> exp2(const Scalar<T>& x) { return std::exp2(x.value); }
template <class T> Scalar<T> expm1(const Scalar<T>& x) { return std::expm1(x.value); }
template <class T> Scalar<T> log(const Scalar<T>& x) { return std::log(x.value); }
template <class T> Scalar<T> log1p(const Scalar<T>& x) { return std::log1p(x.value); }
template <class T> Scalar<T> log2(const Scalar<T>& x) { return std::log2(x.value); }
template <class T> Scalar<T> log10(const Scalar<T>& x) { return std::log10(x.value); }
template <class X, class Y>
requires detail::Scalars<X, Y> detail::ScalarOf<X, Y> pow(const X& x, const Y& y) {
  const auto v = detail::values(x, y);
  return std::pow(v.a, v.b);
}
/// log(eᵃ + eᵇ). If a and b are equal, including infinities, their difference is not used.
template <class X, class Y>
requires detail::Scalars<X, Y> detail::ScalarOf<X, Y> logaddexp(const X& x, const Y& y) {
  const auto [a, b] = detail::values(x, y);
  const double difference = a == b ? 0 : std::abs(static_cast<double>(a) - static_cast<double>(b));
  return static_cast<double>(a < b ? b : a) + std::log1p(std::exp(-difference));
}

// Trigonometric and hyperbolic functions.
template <class T> Scalar<T> sin(const Scalar<T>& x) { return std::sin(x.value); }
template <class T> Scalar<T> cos(const Scalar<T>& x) { return std::cos(x.value); }
template <class T> Scalar<T> tan(const Scalar<T>& x) { return std::tan(x.value); }
template <class T> Scalar<T> asin(const Scalar<T>& x) { return std::asin(x.value); }
template <class T> Scalar<T> acos(const Scalar<T>& x) { return std::acos(x.value); }
template <class T> Scalar<T> atan(const Scalar<T>& x) { return std::atan(x.value); }
template <class X, class Y>
requires detail::Scalars<X, Y> detail::ScalarOf<X, Y> atan2(const X& x, const Y& y) {
  const auto v = detail::values(x, y);
  return std::atan2(v.a, v.b);
}
template <class X, class Y>
requires detail::Scalars<X, Y> detail::ScalarOf<X, Y> hypot(const X& x, const Y& y) {
  const auto v = detail::values(x, y);
  return std::hypot(v.a, v.b);
}
template <class T> Scalar<T> sinh(const Scalar<T>& x) { return std::sinh(x.value); }
template <class T> Scalar<T> cosh(const Scalar<T>& x) { return std::cosh(x.value); }
template <class T> Scalar<T> tanh(const Scalar<T>& x) { return std::tanh(x.value); }
template <class T> Scalar<T> asinh(const Scalar<T>& x) { return std::asinh(x.value); }
template <class T> Scalar<T> acosh(const Scalar<T>& x) { return std::acosh(x.value); }
template <class T> Scalar<T> atanh(const Scalar<T>& x) { return std::atanh(x.value); }

// Functions of neural networks and statistics.
/// 1 / (1 + e⁻ˣ), without a large e⁻ˣ.
template <class T> Scalar<T> sigmoid(const Scalar<T>& x) {
  const T e = std::exp(-std::abs(x.value));
  return (x.value < 0 ? e : T(1)) / (1 + e);
}
template <class T> Scalar<T> erf(const Scalar<T>& x) { return std::erf(x.value); }
template <class T> Scalar<T> erfc(const Scalar<T>& x) { return std::erfc(x.value); }

}   // namespace tapedeck
