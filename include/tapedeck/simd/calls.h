// Functions of SIMD batches in user programs that are implemented in the library, and rounding functions.
#pragma once
#include "tapedeck/simd/elementary.h"
#include "tapedeck/simd/functions.h"

namespace tapedeck {
namespace detail {

using kernels::VectorFunction;
template <Tracing B> B in_library(VectorFunction, const B& x) { return not_traced(x); }
template <Tracing B> B in_library(VectorFunction, const B& x, const B&) { return not_traced(x); }
template <class B> B in_library(VectorFunction f, const B& x) {
  alignas(64) typename B::value_type a[B::size];
  x.store_aligned(a);
  kernels::apply(f, a, nullptr, static_cast<int>(B::size));
  return B::load_aligned(a);
}
template <class B> B in_library(VectorFunction f, const B& x, const B& y) {
  alignas(64) typename B::value_type a[B::size], b[B::size];
  x.store_aligned(a);
  y.store_aligned(b);
  kernels::apply(f, a, b, static_cast<int>(B::size));
  return B::load_aligned(a);
}

/// f(x), which without SSE4.1 is computed by conversion to integers. Numbers out of their range are integral
/// already, NaN remains, and the sign is restored, since integers have no negative zero.
template <class B, class F> B rounded(const B& x, F f) {
#ifdef __SSE4_1__
  return f(x);
#else
  const auto fits = xsimd::abs(x) < B(kRounder<typename B::value_type>);
  return xsimd::select(fits, f(xsimd::select(fits, x, B(0))) | xsimd::bitofsign(x), x);
#endif
}

}   // namespace detail

template <class T, class A>
requires Real<T> xsimd::batch<T, A> cbrt(const xsimd::batch<T, A>& x) {
  return detail::in_library(detail::VectorFunction::cbrt, x);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> log2(const xsimd::batch<T, A>& x) {
  return detail::in_library(detail::VectorFunction::log2, x);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> log10(const xsimd::batch<T, A>& x) {
  return detail::in_library(detail::VectorFunction::log10, x);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> asin(const xsimd::batch<T, A>& x) {
  return detail::in_library(detail::VectorFunction::asin, x);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> acos(const xsimd::batch<T, A>& x) {
  return detail::in_library(detail::VectorFunction::acos, x);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> atan(const xsimd::batch<T, A>& x) {
  return detail::in_library(detail::VectorFunction::atan, x);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> asinh(const xsimd::batch<T, A>& x) {
  return detail::in_library(detail::VectorFunction::asinh, x);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> acosh(const xsimd::batch<T, A>& x) {
  return detail::in_library(detail::VectorFunction::acosh, x);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> atanh(const xsimd::batch<T, A>& x) {
  return detail::in_library(detail::VectorFunction::atanh, x);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> erf(const xsimd::batch<T, A>& x) {
  return detail::in_library(detail::VectorFunction::erf, x);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> erfc(const xsimd::batch<T, A>& x) {
  return detail::in_library(detail::VectorFunction::erfc, x);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> pow(const xsimd::batch<T, A>& x, const xsimd::batch<T, A>& y) {
  return detail::in_library(detail::VectorFunction::pow, x, y);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> atan2(const xsimd::batch<T, A>& x, const xsimd::batch<T, A>& y) {
  return detail::in_library(detail::VectorFunction::atan2, x, y);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> hypot(const xsimd::batch<T, A>& x, const xsimd::batch<T, A>& y) {
  return detail::in_library(detail::VectorFunction::hypot, x, y);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> floor(const xsimd::batch<T, A>& x) {
  return detail::rounded(x, [](const auto& v) { return xsimd::floor(v); });
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> ceil(const xsimd::batch<T, A>& x) {
  return detail::rounded(x, [](const auto& v) { return xsimd::ceil(v); });
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> trunc(const xsimd::batch<T, A>& x) {
  return detail::rounded(x, [](const auto& v) { return xsimd::trunc(v); });
}

}   // namespace tapedeck
