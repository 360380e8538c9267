// Functions of SIMD batches and scalars that partials use. Their Tensor forms, in
// lib/ops/elementwise/slopes.h, are ops, which keep derivatives of higher orders accurate.
#pragma once
#include "tapedeck/simd/choices.h"
#include "tapedeck/simd/scalar.h"

namespace tapedeck {
namespace detail {

template <class X> inline constexpr bool kIsBatch = false;
template <class T, class A> inline constexpr bool kIsBatch<xsimd::batch<T, A>> = std::is_floating_point_v<T>;

template <class T, class A>
xsimd::batch<T, A> smaller(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  return xsimd::min(a, b);
}
template <class T, class A>
xsimd::batch<T, A> larger(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  return xsimd::max(a, b);
}
/// x² - square, where square is x² rounded; Dekker's product if there is no fused instruction.
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

/// Types that compute values only, without derivatives.
template <class X>
concept Lanes = detail::kIsBatch<X> || detail::kIsScalar<X>;

/// sigmoid, under the name by which partials call it: the version for Tensors computes its derivatives from
/// x, not from 1 - y.
template <Lanes B> B logistic(const B& x) { return sigmoid(x); }
/// The derivative of sigmoid, sigmoid(x) sigmoid(-x).
template <Lanes B> B logistic_slope(const B& x) {
  const B e = exp(-abs(x)), r = 1 / (1 + e);
  return e * r * r;
}

/// a - b, and -∞ where both are -∞: a and b are logarithms of terms, which then do not contribute to their
/// sum.
template <Lanes B> B log_ratio(const B& a, const B& b) {
  const B nothing(-std::numeric_limits<typename B::value_type>::infinity());
  return where(a == nothing && b == nothing, nothing, a - b);
}

/// Where aᵇ is 1 and 0 · a⁻¹ is not its derivative with respect to a, since a⁻¹ may be infinite. The version
/// for Tensors is defined next to the op.
template <Lanes B> auto no_inverse(const B& a, const B& b) {
  using T = typename B::value_type;
  return abs(a) < B(std::numeric_limits<T>::min()) && b == B(T(0));
}

/// exp(-c x²), with x² in twice the precision if c is 1, -1 or ½.
template <Lanes B> B gaussian(const B& x, const std::type_identity_t<B>& c) {
  using T = typename B::value_type;
  const B r = detail::smaller(B(T(40)), B(abs(x))), square = r * r, e = exp(-c * square);
  const B y = detail::fma(e, -c * detail::rest_of_square(r, square), e);
  return where(e == B(std::numeric_limits<T>::infinity()), e, y);
}

/// 1 - x².
template <Lanes B> B one_minus_square(const B& x) { return (1 - x) * (1 + x); }
/// 1 / √(1 - x²), the derivative of asin.
template <Lanes B> B asin_slope(const B& x) { return 1 / sqrt(one_minus_square(x)); }
/// 1 / √(x² - 1), the derivative of acosh, without overflow.
template <Lanes B> B acosh_slope(const B& x) { return 1 / (sqrt(x - 1) * sqrt(x + 1)); }
/// 1 / (1 + x²), the derivative of atan.
template <Lanes B> B atan_slope(const B& x) { return 1 / (1 + x * x); }
/// 1 / √(1 + x²), the derivative of asinh, without overflow.
template <Lanes B> B asinh_slope(const B& x) {
  const B large(typename B::value_type(1e9)), r = abs(x), small = detail::smaller(large, r);
  return large / detail::larger(large, r) / sqrt(1 + small * small);
}
/// √(a² + b²) without overflow or underflow, for derivatives; NaN where both are 0.
template <Lanes B> B length_of(const B& a, const B& b) {
  const B p = abs(a), q = abs(b), large = where(p > q, p, q), ratio = where(p > q, q, p) / large;
  return large * sqrt(1 + ratio * ratio);
}
/// a / y with y = hypot(a, b), and 0 where y is 0. The version for Tensors reads b instead of y.
template <Lanes B> B over_hypot(const B& a, const B&, const B& y) { return div_no_nan(a, y); }

}   // namespace tapedeck
