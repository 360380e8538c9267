// Complexes: 64 bytes of complex numbers, for lambdas written for SIMD batches. Products use the plain
// formula; quotients and functions are the standard library's, which handle overflow and branch cuts.
#pragma once
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tapedeck::kernels {

/// a b by the plain formula. std::complex's operator also checks for NaN, which doubles the cost.
template <class T> std::complex<T> product(const std::complex<T>& a, const std::complex<T>& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class T> struct Complexes {
  using value_type = T;   // std::complex
  using Part = typename T::value_type;
  static constexpr int kCount = 64 / sizeof(T);
  T v[kCount];

  Complexes() = default;
  Complexes(const T& all) {
    for (T& e : v)
      e = all;
  }
  template <class N>
  requires std::is_arithmetic_v<N> Complexes(N all) : Complexes(T(static_cast<Part>(all))) {}

  static Complexes load_unaligned(const T* p) {
    Complexes r;
    std::memcpy(r.v, p, sizeof r.v);
    return r;
  }
  void store_unaligned(T* p) const { std::memcpy(p, v, sizeof v); }

  template <class F> static Complexes each(const Complexes& a, F f) {
    Complexes r;
    for (int i = 0; i < kCount; ++i)
      r.v[i] = f(a.v[i]);
    return r;
  }
  template <class F> static Complexes each(const Complexes& a, const Complexes& b, F f) {
    Complexes r;
    for (int i = 0; i < kCount; ++i)
      r.v[i] = f(a.v[i], b.v[i]);
    return r;
  }
  // eᶻ - 1 = (eˣ - 1) cos y - 2 sin²(y/2) + i eˣ sin y, without cancellation near 0.
  static T expm1_of(const T& z) {
    const Part half = std::sin(z.imag() / 2);
    return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half,
            std::exp(z.real()) * std::sin(z.imag())};
  }
  // |1 + z|² - 1 = x (2 + x) + y².
  static T log1p_of(const T& z) {
    const Part x = z.real(), y = z.imag();
    if (!(std::abs(x) + std::abs(y) < Part(0.5))) return std::log(Part(1) + z);
    return {std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x)};
  }
  // 1 / √(1 - z²). Takes the roots of 1 - z and 1 + z, since the root of their product has another branch
  // cut. The 1 is real, so that an imaginary part of ±0, which selects the side of a cut, keeps its sign.
  static T asin_slope_of(const T& z) {
    return T(1) / product(std::sqrt(Part(1) - z), std::sqrt(Part(1) + z));
  }
  static T acosh_slope_of(const T& z) {
    return T(1) / product(std::sqrt(z - Part(1)), std::sqrt(z + Part(1)));
  }
  static T asinh_slope_of(const T& z) { return asin_slope_of({-z.imag(), z.real()}); }
  static T power(const T& a, const T& b) {
    if (b == T(0)) return T(1);
    if (a == T(0)) return b.real() > 0 ? T(0) : std::pow(a, b);
    return std::pow(a, b);
  }

  friend Complexes operator+(const Complexes& a, const Complexes& b) {
    return each(a, b, [](const T& x, const T& y) { return x + y; });
  }
  friend Complexes operator-(const Complexes& a, const Complexes& b) {
    return each(a, b, [](const T& x, const T& y) { return x - y; });
  }
  friend Complexes operator*(const Complexes& a, const Complexes& b) {
    return each(a, b, [](const T& x, const T& y) { return product(x, y); });
  }
  friend Complexes operator/(const Complexes& a, const Complexes& b) {
    return each(a, b, [](const T& x, const T& y) { return x / y; });
  }
  friend Complexes operator-(const Complexes& a) {
    return each(a, [](const T& x) { return -x; });
  }

  friend Complexes mul_no_nan(const Complexes& a, const Complexes& b) {
    return each(a, b, [](const T& x, const T& y) { return y == T(0) ? T(0) : product(x, y); });
  }
  friend Complexes div_no_nan(const Complexes& a, const Complexes& b) {
    return each(a, b, [](const T& x, const T& y) { return y == T(0) ? T(0) : x / y; });
  }
  friend Complexes xlogy(const Complexes& a, const Complexes& b) {
    return each(a, b, [](const T& x, const T& y) { return x == T(0) ? T(0) : product(x, std::log(y)); });
  }
  friend Complexes xlog1py(const Complexes& a, const Complexes& b) {
    return each(a, b, [](const T& x, const T& y) { return x == T(0) ? T(0) : product(x, log1p_of(y)); });
  }
  friend Complexes xdivy(const Complexes& a, const Complexes& b) {
    return each(a, b, [](const T& x, const T& y) { return x == T(0) ? T(0) : x / y; });
  }
  friend Complexes sqrt(const Complexes& a) {
    return each(a, [](const T& x) { return std::sqrt(x); });
  }
  friend Complexes exp(const Complexes& a) {
    return each(a, [](const T& x) { return std::exp(x); });
  }
  friend Complexes expm1(const Complexes& a) { return each(a, expm1_of); }
  friend Complexes log(const Complexes& a) {
    return each(a, [](const T& x) { return std::log(x); });
  }
  friend Complexes log1p(const Complexes& a) { return each(a, log1p_of); }
  friend Complexes sin(const Complexes& a) {
    return each(a, [](const T& x) { return std::sin(x); });
  }
  friend Complexes cos(const Complexes& a) {
    return each(a, [](const T& x) { return std::cos(x); });
  }
  friend Complexes tan(const Complexes& a) {
    return each(a, [](const T& x) { return std::tan(x); });
  }
  friend Complexes asin(const Complexes& a) {
    return each(a, [](const T& x) { return std::asin(x); });
  }
  friend Complexes acos(const Complexes& a) {
    return each(a, [](const T& x) { return std::acos(x); });
  }
  friend Complexes atan(const Complexes& a) {
    return each(a, [](const T& x) { return std::atan(x); });
  }
  friend Complexes asin_slope(const Complexes& a) { return each(a, asin_slope_of); }
  friend Complexes acosh_slope(const Complexes& a) { return each(a, acosh_slope_of); }
  friend Complexes asinh_slope(const Complexes& a) { return each(a, asinh_slope_of); }
  friend Complexes sinh(const Complexes& a) {
    return each(a, [](const T& x) { return std::sinh(x); });
  }
  friend Complexes cosh(const Complexes& a) {
    return each(a, [](const T& x) { return std::cosh(x); });
  }
  friend Complexes tanh(const Complexes& a) {
    return each(a, [](const T& x) { return std::tanh(x); });
  }
  friend Complexes asinh(const Complexes& a) {
    return each(a, [](const T& x) { return std::asinh(x); });
  }
  friend Complexes acosh(const Complexes& a) {
    return each(a, [](const T& x) { return std::acosh(x); });
  }
  friend Complexes atanh(const Complexes& a) {
    return each(a, [](const T& x) { return std::atanh(x); });
  }
  friend Complexes sigmoid(const Complexes& a) {
    return each(a, [](const T& x) { return T(1) / (T(1) + std::exp(-x)); });
  }
  friend Complexes pow(const Complexes& a, const Complexes& b) { return each(a, b, power); }
};

}   // namespace tapedeck::kernels
