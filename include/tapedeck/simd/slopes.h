// Functions that partials are made of, of SIMD batches. Their Tensor forms, in lib/ops/elementwise/slopes.h,
// are ops, which keep derivatives of higher orders accurate.
#pragma once
#include "tapedeck/simd/choices.h"

namespace tapedeck {

/// sigmoid under the name that partials call it by: that of Tensors has derivatives that are computed from x,
/// not from 1 - y.
template <class T, class A>
requires Real<T> xsimd::batch<T, A> logistic(const xsimd::batch<T, A>& x) { return sigmoid(x); }
/// The derivative of sigmoid, sigmoid(x) sigmoid(-x).
template <class T, class A>
requires Real<T> xsimd::batch<T, A> logistic_slope(const xsimd::batch<T, A>& x) {
  const xsimd::batch<T, A> e = exp(-xsimd::abs(x)), r = 1 / (1 + e);
  return e * r * r;
}

namespace detail {
/// x² - square, where square is x² rounded; Dekker's product where there is no fused instruction.
template <class T, class A>
xsimd::batch<T, A> rest_of_square(const xsimd::batch<T, A>& x, const xsimd::batch<T, A>& square) {
  if constexpr (kFused<A>) {
    return detail::fma(x, x, -square);
  } else {
    const xsimd::batch<T, A> shifted = x * T(kSingle<T> ? 0x1p12 + 1 : 0x1p27 + 1),
                             high = shifted - (shifted - x), low = x - high;
    return ((high * high - square) + T(2) * (high * low)) + low * low;
  }
}
}   // namespace detail

/// exp(-c x²), with x² in twice the precision if c is 1, -1 or ½.
template <class T, class A>
requires Real<T> xsimd::batch<T, A> gaussian(const xsimd::batch<T, A>& x,
                                             const std::type_identity_t<xsimd::batch<T, A>>& c) {
  using B = xsimd::batch<T, A>;
  const B r = xsimd::min(B(T(40)), xsimd::abs(x)), square = r * r, e = exp(-c * square);
  return detail::fma(e, -c * detail::rest_of_square(r, square), e);
}

/// 1 - x².
template <class T, class A>
requires Real<T> xsimd::batch<T, A> one_minus_square(const xsimd::batch<T, A>& x) {
  return (1 - x) * (1 + x);
}
/// 1 / (1 + x²), the derivative of atan.
template <class T, class A>
requires Real<T> xsimd::batch<T, A> atan_slope(const xsimd::batch<T, A>& x) { return 1 / (1 + x * x); }
/// 1 / √(1 + x²), the derivative of asinh, without overflow.
template <class T, class A>
requires Real<T> xsimd::batch<T, A> asinh_slope(const xsimd::batch<T, A>& x) {
  using B = xsimd::batch<T, A>;
  const B large(T(1e9)), r = xsimd::abs(x), small = xsimd::min(large, r);
  return large / xsimd::max(large, r) / xsimd::sqrt(1 + small * small);
}
/// √(a² + b²) without overflow or underflow, for derivatives; NaN where both are 0.
template <class T, class A>
requires Real<T> xsimd::batch<T, A> length_of(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  using B = xsimd::batch<T, A>;
  const B p = xsimd::abs(a), q = xsimd::abs(b), large = xsimd::select(p > q, p, q),
          ratio = xsimd::select(p > q, q, p) / large;
  return large * xsimd::sqrt(1 + ratio * ratio);
}
/// a / y where y = hypot(a, b), which is all that the derivative of a Tensor's reads of b; 0 where y is 0.
template <class T, class A> xsimd::batch<T, A> over_hypot(const xsimd::batch<T, A>& a,
                                                          const xsimd::batch<T, A>&,
                                                          const xsimd::batch<T, A>& y) {
  return div_no_nan(a, y);
}

}   // namespace tapedeck
