// Elementary functions of SIMD batches, f32 or f64, from SLEEF, or from libm in double if SLEEF lacks the
// instruction set; and functions made of these. Within 1 ulp (erfc: 1.5) over the whole range, the same
// computation for every lane.
#pragma once
#include <sleef.h>

#include "tapedeck/simd/elementary.h"

namespace tapedeck {
namespace sleef {

/// SLEEF's functions for registers of f32 and of f64.
template <auto f32, auto f64> struct Registers {
  template <class B, class... More> B operator()(const B& first, const More&... more) const {
    if constexpr (detail::kIsTraced<B>)
      return detail::not_traced(first);
    else if constexpr (detail::kSingle<typename B::value_type>)
      return f32(first, more...);
    else
      return f64(first, more...);
  }
};
template <double (*f)(double)> struct Libm {
  template <class B> B operator()(const B& x) const { return detail::by_element(f, x); }
};
template <double (*f)(double, double)> struct Libm2 {
  template <class B> B operator()(const B& x, const B& y) const { return detail::by_element(f, x, y); }
};

// TAPEDECK_SLEEF(f, error): f within `error`, in SLEEF's notation, for the registers of the instruction set.
#if defined(__AVX512F__)
#define TAPEDECK_SLEEF(f, error) Registers<Sleef_##f##f16_##error##avx512f, Sleef_##f##d8_##error##avx512f>
#elif defined(__AVX2__) && defined(__FMA__)
#define TAPEDECK_SLEEF(f, error) Registers<Sleef_##f##f8_##error##avx2, Sleef_##f##d4_##error##avx2>
#elif defined(__aarch64__)
#define TAPEDECK_SLEEF(f, error) Registers<Sleef_##f##f4_##error##advsimd, Sleef_##f##d2_##error##advsimd>
#endif

#ifdef TAPEDECK_SLEEF
inline constexpr TAPEDECK_SLEEF(cbrt, u10) cbrt;
inline constexpr TAPEDECK_SLEEF(log2, u10) log2;
inline constexpr TAPEDECK_SLEEF(log10, u10) log10;
inline constexpr TAPEDECK_SLEEF(asin, u10) asin;
inline constexpr TAPEDECK_SLEEF(acos, u10) acos;
inline constexpr TAPEDECK_SLEEF(atan, u10) atan;
inline constexpr TAPEDECK_SLEEF(asinh, u10) asinh;
inline constexpr TAPEDECK_SLEEF(acosh, u10) acosh;
inline constexpr TAPEDECK_SLEEF(atanh, u10) atanh;
inline constexpr TAPEDECK_SLEEF(erf, u10) erf;
inline constexpr TAPEDECK_SLEEF(erfc, u15) erfc;
inline constexpr TAPEDECK_SLEEF(atan2, u10) atan2;
inline constexpr TAPEDECK_SLEEF(hypot, u05) hypot;
inline constexpr TAPEDECK_SLEEF(pow, u10) pow;
#undef TAPEDECK_SLEEF
#else
inline constexpr Libm<std::cbrt> cbrt;
inline constexpr Libm<std::log2> log2;
inline constexpr Libm<std::log10> log10;
inline constexpr Libm<std::asin> asin;
inline constexpr Libm<std::acos> acos;
inline constexpr Libm<std::atan> atan;
inline constexpr Libm<std::asinh> asinh;
inline constexpr Libm<std::acosh> acosh;
inline constexpr Libm<std::atanh> atanh;
inline constexpr Libm<std::erf> erf;
inline constexpr Libm<std::erfc> erfc;
inline constexpr Libm2<std::atan2> atan2;
inline constexpr Libm2<std::hypot> hypot;
inline constexpr Libm2<std::pow> pow;
#endif

/// For arguments above kLarge, squares in SLEEF's inverse hyperbolic functions may overflow; the functions
/// are then log 2x.
template <class T> inline constexpr T kLarge = T(1e15);
template <class B> B with_large(const B& x, const B& y) {
  using T = typename B::value_type;
  const auto large = x > B(kLarge<T>);
  return detail::rarely(large, y, [&] { return xsimd::select(large, log(x) + T(0.6931471805599453), y); });
}

}   // namespace sleef

template <Real T, class A> xsimd::batch<T, A> cbrt(const xsimd::batch<T, A>& x) { return sleef::cbrt(x); }
template <Real T, class A> xsimd::batch<T, A> log2(const xsimd::batch<T, A>& x) { return sleef::log2(x); }
template <Real T, class A> xsimd::batch<T, A> log10(const xsimd::batch<T, A>& x) { return sleef::log10(x); }
template <Real T, class A> xsimd::batch<T, A> asin(const xsimd::batch<T, A>& x) { return sleef::asin(x); }
template <Real T, class A> xsimd::batch<T, A> acos(const xsimd::batch<T, A>& x) { return sleef::acos(x); }
template <Real T, class A> xsimd::batch<T, A> atan(const xsimd::batch<T, A>& x) { return sleef::atan(x); }
template <Real T, class A> xsimd::batch<T, A> asinh(const xsimd::batch<T, A>& x) {
  return xsimd::copysign(sleef::with_large(xsimd::abs(x), sleef::asinh(x)), x);
}
template <Real T, class A> xsimd::batch<T, A> acosh(const xsimd::batch<T, A>& x) {
  return sleef::with_large(x, sleef::acosh(x));
}
template <Real T, class A> xsimd::batch<T, A> atanh(const xsimd::batch<T, A>& x) { return sleef::atanh(x); }
template <Real T, class A> xsimd::batch<T, A> erf(const xsimd::batch<T, A>& x) { return sleef::erf(x); }
template <Real T, class A> xsimd::batch<T, A> erfc(const xsimd::batch<T, A>& x) { return sleef::erfc(x); }
template <Real T, class A>
xsimd::batch<T, A> atan2(const xsimd::batch<T, A>& y, const xsimd::batch<T, A>& x) {
  return sleef::atan2(y, x);
}
template <Real T, class A>
xsimd::batch<T, A> hypot(const xsimd::batch<T, A>& x, const xsimd::batch<T, A>& y) {
  return sleef::hypot(x, y);
}

/// SLEEF's pow overflows in f64 just below the largest number; libm recomputes infinite results.
template <Real T, class A> xsimd::batch<T, A> pow(const xsimd::batch<T, A>& x, const xsimd::batch<T, A>& y) {
  const xsimd::batch<T, A> z = sleef::pow(x, y);
  if constexpr (detail::kSingle<T>) return z;
  const auto infinite = xsimd::isinf(z);
  return detail::rarely(infinite, z,
                        [&] { return xsimd::select(infinite, sleef::Libm2<std::pow>()(x, y), z); });
}

namespace detail {
/// The probability that a standard normal number is below -r, for r = |x| ≤ 15, as power · ratio: exp(-r²/2),
/// and a fit over 1 / (r + 4).
template <class B> struct NormalTail {
  B r, power, ratio;

  explicit NormalTail(const B& x)
      : r(xsimd::min(B(15.0f), xsimd::abs(x))) {   // NaN propagates: min returns its second operand
    const B square = r * r, rest = detail::fma(r, r, -square), e = exp(-0.5f * square),
            inverse = 1 / (r + 4.0f), q = (r - 4.0f) * inverse;
    power = detail::fma(e, -0.5f * rest, e);
    ratio =
        inverse * polynomial(q, 0x1.82b4bcp-1, -0x1.373e38p-1, 0x1.8c6d9ep-2, -0x1.7e0006p-3, 0x1.eed3e2p-5,
                             -0x1.ed289ap-8, -0x1.cc55e8p-9, 0x1.9b7536p-10, 0x1.7613cp-13, -0x1.15ba88p-13);
  }
};
template <class B> inline constexpr bool kHasTail =
    kSingle<typename B::value_type>&& kFused<typename B::arch_type>;
inline double normal_cdf_of_number(double x) { return std::erfc(-0.7071067811865476 * x) / 2; }
}   // namespace detail

/// The probability that a standard normal number is below x.
template <Real T, class A> xsimd::batch<T, A> normal_cdf(const xsimd::batch<T, A>& x) {
  using B = xsimd::batch<T, A>;
  if constexpr (detail::kHasTail<B>) {
    const detail::NormalTail<B> tail(x);
    const B below = tail.power * tail.ratio;
    return xsimd::select(x < B(0.0f), below, 1 - below);
  } else if constexpr (detail::kSingle<T>) {
    return detail::by_element(detail::normal_cdf_of_number, x);
  } else {
    return 0.5 * erfc(-0.7071067811865476 * x);
  }
}

/// x normal_cdf(x), which is 0 at -inf.
template <Real T, class A> xsimd::batch<T, A> gelu(const xsimd::batch<T, A>& x) {
  using B = xsimd::batch<T, A>;
  if constexpr (detail::kHasTail<B>) {
    const detail::NormalTail<B> tail(x);
    const B product = tail.power * (xsimd::copysign(tail.r, x) * tail.ratio);
    return xsimd::select(x <= B(0.0f), product, x - product);   // -0 at -0
  } else if constexpr (detail::kSingle<T>) {
    return detail::by_element([](double v) { return v < -1e30 ? -0.0 : v * detail::normal_cdf_of_number(v); },
                              x);
  } else {
    return xsimd::max(B(std::numeric_limits<T>::lowest()), x) *
           normal_cdf(x);   // NaN propagates: max returns its second operand
  }
}

}   // namespace tapedeck
