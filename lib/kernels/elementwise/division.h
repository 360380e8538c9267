// Quotients and remainders of SIMD batches and of integers, for the lambdas of ops. Integer division by 0
// returns 0: ops reject zero divisors beforehand, but the padding at the end of a row may contain zeros.
#pragma once
#include <algorithm>

#include "core/bytes.h"
#include "core/visit.h"
#include "kernels/simd/simd.h"

namespace tapedeck {

template <class T, class A>
requires Real<T> xsimd::batch<T, A> floor_div(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  return floor(a / b);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> truncate_div(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  return trunc(a / b);
}
namespace detail {
/// fmod(a, b), plus b if the signs differ; a result of 0 has the sign of b.
template <class B> [[gnu::noinline]] B floor_mod_by_element(const B& a, const B& b) {
  return by_element(
      [](double x, double y) {
        const double rest = std::fmod(x, y);
        return rest == 0 ? std::copysign(0.0, y) : (rest < 0) != (y < 0) ? rest + y : rest;
      },
      a, b);
}
}   // namespace detail

/// Exact where a and b have the same sign, like fmod. While the quotient has few enough bits, truncation is
/// off by at most 1, and the remainder is representable, since it is a multiple of b's last bit.
template <class T, class A>
requires Real<T> xsimd::batch<T, A> floor_mod(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  using B = xsimd::batch<T, A>;
  if constexpr (detail::kFused<A>) {
    const B r = xsimd::abs(a), s = xsimd::abs(b), quotient = trunc(r / s),
            left = detail::fma(-quotient, s, r),
            rest = xsimd::copysign(xsimd::select(left < B(T(0)), left + s, left), a),
            y = xsimd::select(left == B(T(0)), xsimd::copysign(B(T(0)), b),
                              xsimd::select((a < B(T(0))) == (b < B(T(0))), rest, rest + b));
    const auto exact = (quotient < B(detail::kRounder<T> / 4)) & (s < B(std::numeric_limits<T>::infinity()));
    return detail::rarely(!exact, y,
                          [&] { return xsimd::select(exact, y, detail::floor_mod_by_element(a, b)); });
  } else {
    return detail::floor_mod_by_element(a, b);
  }
}

namespace kernels {

template <class T> T truncated_quotient(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1)
      return static_cast<T>(std::make_unsigned_t<T>(0) -
                            static_cast<std::make_unsigned_t<T>>(a));   // the lowest value maps to itself
  return static_cast<T>(a / b);
}
/// Whether the quotient is negative and not an integer, so that floor and truncation differ.
template <class T> bool rounds_down(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    return b != 0 && b != -1 && a % b != 0 && (a < 0) != (b < 0);
  else
    return false;
}

template <class T> Integers<T> truncate_div(const Integers<T>& a, const Integers<T>& b) {
  return Integers<T>::each(a, b, truncated_quotient<T>);
}
template <class T> Integers<T> floor_div(const Integers<T>& a, const Integers<T>& b) {
  return Integers<T>::each(a, b, [](T x, T y) { return truncated_quotient(x, y) - rounds_down(x, y); });
}
template <class T> Integers<T> floor_mod(const Integers<T>& a, const Integers<T>& b) {
  return Integers<T>::each(a, b, [](T x, T y) {
    return y == 0 || (std::is_signed_v<T> && y == T(-1))
               ? T(0)
               : static_cast<T>(x % y + (rounds_down(x, y) ? y : T(0)));
  });
}

/// The index of the first zero in b, or -1.
inline std::int64_t find_zero(const Tensor& b) {
  return visit(b.dtype(), [&]<class T>(T) -> std::int64_t {
    const T* first = elements<T>(b);
    const T* at = std::find(first, first + b.size(), T(0));
    return at == first + b.size() ? -1 : at - first;
  });
}

}   // namespace kernels
}   // namespace tapedeck
