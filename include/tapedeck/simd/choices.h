// Choices, element by element, between SIMD batches.
#pragma once
#include "tapedeck/simd/elementary.h"

namespace tapedeck {

/// a where c is true, else b.
template <class T, class A> xsimd::batch<T, A> where(xsimd::batch_bool<T, A> c,
                                                     std::type_identity_t<xsimd::batch<T, A>> a,
                                                     std::type_identity_t<xsimd::batch<T, A>> b) {
  return xsimd::select(c, a, b);
}
/// The maximum and the minimum; NaN where either is NaN. xsimd's own functions return their second argument
/// where one is NaN.
template <class T, class A>
xsimd::batch<T, A> maximum(xsimd::batch<T, A> a, std::type_identity_t<xsimd::batch<T, A>> b) {
  return xsimd::select(a == a, xsimd::max(a, b), a);
}
template <class T, class A>
xsimd::batch<T, A> minimum(xsimd::batch<T, A> a, std::type_identity_t<xsimd::batch<T, A>> b) {
  return xsimd::select(a == a, xsimd::min(a, b), a);
}
/// -1, 0 or 1; ±0 and NaN are returned unchanged.
template <class T, class A>
requires Real<T> xsimd::batch<T, A> sign(const xsimd::batch<T, A>& x) {
  return where(x > T(0), T(1), where(x < T(0), T(-1), x * T(0)));
}
/// a / b, and 0 where b is 0.
template <class T, class A> xsimd::batch<T, A> div_no_nan(const std::type_identity_t<xsimd::batch<T, A>>& a,
                                                          const xsimd::batch<T, A>& b) {
  return where(b == T(0), T(0), a / b);
}

}   // namespace tapedeck
