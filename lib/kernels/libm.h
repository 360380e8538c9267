// Functions of SIMD batches that go through libm, element by element in double: exact where libm is, whatever the order of
// magnitude. In: f32 or f64. Out: the function, within 1 ulp in f32.
#pragma once
#include "kernels/simd.h"

namespace tapedeck {

template <class T, class A> requires Real<T> xsimd::batch<T, A> cbrt(const xsimd::batch<T, A>& x) { return detail::by_element([](double v) { return std::cbrt(v); }, x); }
template <class T, class A> requires Real<T> xsimd::batch<T, A> log2(const xsimd::batch<T, A>& x) { return detail::by_element([](double v) { return std::log2(v); }, x); }
template <class T, class A> requires Real<T> xsimd::batch<T, A> log10(const xsimd::batch<T, A>& x) { return detail::by_element([](double v) { return std::log10(v); }, x); }
template <class T, class A> requires Real<T> xsimd::batch<T, A> asin(const xsimd::batch<T, A>& x) { return detail::by_element([](double v) { return std::asin(v); }, x); }
template <class T, class A> requires Real<T> xsimd::batch<T, A> acos(const xsimd::batch<T, A>& x) { return detail::by_element([](double v) { return std::acos(v); }, x); }
template <class T, class A> requires Real<T> xsimd::batch<T, A> atan(const xsimd::batch<T, A>& x) { return detail::by_element([](double v) { return std::atan(v); }, x); }
template <class T, class A> requires Real<T> xsimd::batch<T, A> asinh(const xsimd::batch<T, A>& x) { return detail::by_element([](double v) { return std::asinh(v); }, x); }
template <class T, class A> requires Real<T> xsimd::batch<T, A> acosh(const xsimd::batch<T, A>& x) { return detail::by_element([](double v) { return std::acosh(v); }, x); }
template <class T, class A> requires Real<T> xsimd::batch<T, A> atanh(const xsimd::batch<T, A>& x) { return detail::by_element([](double v) { return std::atanh(v); }, x); }
template <class T, class A> requires Real<T> xsimd::batch<T, A> atan2(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  return detail::by_element([](double y, double x) { return std::atan2(y, x); }, a, b);
}
template <class T, class A> requires Real<T> xsimd::batch<T, A> hypot(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  return detail::by_element([](double x, double y) { return std::hypot(x, y); }, a, b);
}
/// Where a and b are equal, infinities too, their difference is not looked at.
template <class T, class A> requires Real<T> xsimd::batch<T, A> logaddexp(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  return detail::by_element([](double x, double y) { return x == y ? x + 0.6931471805599453 : x > y ? x + std::log1p(std::exp(y - x)) : y + std::log1p(std::exp(x - y)); }, a, b);
}

/// The next number of the elements' own type.
template <class T, class A> requires Real<T> xsimd::batch<T, A> nextafter(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  using B = xsimd::batch<T, A>;
  alignas(64) T x[B::size], y[B::size];
  a.store_aligned(x);
  b.store_aligned(y);
  for (std::size_t i = 0; i < B::size; ++i) x[i] = std::nextafter(x[i], y[i]);
  return B::load_aligned(x);
}

}  // namespace tapedeck
