// Elementary functions of SIMD batches, for cases in which xsimd 8.1's functions are slow, fail at the ends
// of the range or are inaccurate near zeros. f32 and f64, within 3 ulp (tan: 5); the result for NaN is NaN.
// The result of a lane does not depend on the other lanes. Polynomials are minimax fits of the relative
// error.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tapedeck/simd/lane_trace.h"   // before xsimd

// GCC 12 warns about the undefined vectors in its own intrinsics.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <xsimd/xsimd.hpp>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#ifdef __aarch64__
/// xsimd's own functions use the estimates of 32-bit ARM: a third of the results are inaccurate, and the root
/// of infinity is NaN.
namespace xsimd::kernel {
template <> inline batch<float, neon64> div(const batch<float, neon64>& a, const batch<float, neon64>& b,
                                            requires_arch<neon>) noexcept {
  return vdivq_f32(a, b);
}
template <> inline batch<float, neon64> sqrt(const batch<float, neon64>& x, requires_arch<neon>) noexcept {
  return vsqrtq_f32(x);
}
}   // namespace xsimd::kernel
#endif

#if XSIMD_WITH_AVX512F
/// xsimd's own function is 0 - x, which is +0 for both zeros. This one flips the sign bit, also of NaN, as on
/// other instruction sets. Unary minus of batches calls it.
namespace xsimd::kernel {
#define TAPEDECK_NEG(ARCH)                                                                                  \
  template <> inline batch<float, ARCH> neg(const batch<float, ARCH>& x, requires_arch<avx512f>) noexcept { \
    return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN)));     \
  }                                                                                                         \
  template <>                                                                                               \
  inline batch<double, ARCH> neg(const batch<double, ARCH>& x, requires_arch<avx512f>) noexcept {           \
    return _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(x), _mm512_set1_epi64(INT64_MIN)));     \
  }
TAPEDECK_NEG(avx512f)
#if XSIMD_WITH_AVX512CD
TAPEDECK_NEG(avx512cd)
#endif
#if XSIMD_WITH_AVX512DQ
TAPEDECK_NEG(avx512dq)
#endif
#if XSIMD_WITH_AVX512BW
TAPEDECK_NEG(avx512bw)
#endif
#undef TAPEDECK_NEG
}   // namespace xsimd::kernel
#endif

namespace tapedeck {
namespace detail {

template <class T> inline constexpr bool kSingle = sizeof(T) == 4;
template <class T> inline constexpr int kFractionBits = std::numeric_limits<T>::digits - 1;
/// For moderate x, x + kRounder - kRounder is the nearest integer, which is in the last bits of x + kRounder.
template <class T> inline constexpr T kRounder = static_cast<T>(kSingle<T> ? 0x1.8p23 : 0x1.8p52);

template <class B> using Integer =
    std::conditional_t<kSingle<typename B::value_type>, std::int32_t, std::int64_t>;
template <class B> using IntegerBatch = xsimd::batch<Integer<B>, typename B::arch_type>;
template <class B> IntegerBatch<B> bits_of(const B& x) { return xsimd::bitwise_cast<IntegerBatch<B>>(x); }
template <class B> B from_bits(const IntegerBatch<B>& bits) { return xsimd::bitwise_cast<B>(bits); }

/// a b + c, rounded once if the machine has a fused instruction. xsimd's version does not use the one of
/// AVX-512.
template <class B> B fma(const B& a, const B& b, const B& c) {
#ifdef __AVX512F__
  if constexpr (sizeof(B) == 64) {
    if constexpr (kSingle<typename B::value_type>)
      return _mm512_fmadd_ps(a, b, c);
    else
      return _mm512_fmadd_pd(a, b, c);
  } else
#endif
    return xsimd::fma(a, b, c);
}
template <class A> inline constexpr bool kFused = std::is_base_of_v<xsimd::avx512f, A>;
template <class A> inline constexpr bool kFused<xsimd::fma3<A>> = true;
template <> inline constexpr bool kFused<xsimd::neon64> = true;
template <> inline constexpr bool kFused<LaneTrace> = true;

/// a b + c; of batches and plain numbers rounded once, if the machine has a fused instruction.
template <class V> V multiply_add(const V& a, const V& b, const V& c) {
  if constexpr (requires { typename V::arch_type; }) return detail::fma(a, b, c);
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  if constexpr (std::is_floating_point_v<V>) return std::fma(a, b, c);
#endif
  return a * b + c;
}

/// y, or slow() if the mask holds in some lane. slow() returns y in the other lanes.
template <class M, class B, class F> B rarely(const M& mask, const B& y, const F& slow) {
  if constexpr (kIsTraced<B>) {
    namespace tracing = xsimd::kernel::tracing;
    begin_rarely();
    const B rare = slow();
    return tracing::vector<typename B::value_type>(
        end_rarely(tracing::id(mask), tracing::id(y), tracing::id(rare)));
  } else {
    return xsimd::any(mask) ? slow() : y;
  }
}

// Functions that call others, or look at single lanes, cannot be traced.
template <class B>
concept Tracing = kIsTraced<B>;
template <Tracing B> B not_traced(const B& any) {
  cannot_be_traced();
  return any;
}
template <Tracing B> B beyond_largest_angle(const B& x, const B& y, double (*f)(double)) {
  namespace tracing = xsimd::kernel::tracing;
  return tracing::vector<typename B::value_type>(trace_lanes(
      LaneOp::large_angle, tracing::id(x), tracing::id(y), kNoValue, reinterpret_cast<std::uintptr_t>(f)));
}
template <class F, Tracing B, class... More> B by_element(const F&, const B& x, const More&...) {
  return not_traced(x);
}

/// c + x (c1 + x (c2 + …)).
template <class B, class... More> B polynomial(const B& x, double c, More... more) {
  const B first(static_cast<typename B::value_type>(c));
  if constexpr (sizeof...(more) == 0)
    return first;
  else
    return detail::fma(x, polynomial(x, more...), first);
}

/// 2ⁿ times a power of two; x + kRounder is an integer n of the normal range.
template <class B> B power_of_two(const B& n_in_last_bits, int times = 0) {
  using T = typename B::value_type;
  return from_bits<B>((bits_of(n_in_last_bits) + IntegerBatch<B>(static_cast<Integer<B>>(
                                                     std::numeric_limits<T>::max_exponent - 1 + times)))
                      << kFractionBits<T>);
}

/// x 2ⁿ for an integer n, with gradual underflow and overflow to inf.
template <class B> B scale(const B& x, const B& n) {
#ifdef __AVX512F__
  if constexpr (sizeof(B) == 64) {
    if constexpr (kSingle<typename B::value_type>)
      return _mm512_scalef_ps(x, n);
    else
      return _mm512_scalef_pd(x, n);
  } else
#endif
  {
    // Multiply in two steps, since 2ⁿ itself may be out of range.
    const B rounder(kRounder<typename B::value_type>), half = detail::fma(n, B(0.5f), rounder);
    return x * power_of_two(half) * power_of_two(n - (half - rounder) + rounder);
  }
}

/// eˣ = 2ⁿ (1 + q), with n an integer and |q| < 0.42, for x clamped to [low, high].
template <class B> struct Exponential { B n, q; };
template <class B> Exponential<B> exponential(const B& unbounded, double low, double high) {
  using T = typename B::value_type;
  const B x =
      xsimd::max(B(static_cast<T>(low)), xsimd::min(B(static_cast<T>(high)), unbounded));   // keeps NaN
  const B rounder(kRounder<T>), n = detail::fma(x, B(static_cast<T>(1.4426950408889634)), rounder) - rounder;
  // log 2 in two parts, of which the first times n is exact.
  B r = detail::fma(n, B(static_cast<T>(kSingle<T> ? -0x1.63p-1 : -0x1.62e42feep-1)), x);
  r = detail::fma(n, B(static_cast<T>(kSingle<T> ? 0x1.bd0105c610ca8p-13 : -0x1.a39ef35793c76p-33)), r);
  B p;   // (eʳ - 1 - r) / r²
  if constexpr (kSingle<T>)
    p = polynomial(r, 0x1.fffffcp-2, 0x1.555492p-3, 0x1.5558f2p-5, 0x1.123a0cp-7, 0x1.6a245ep-10);
  else
    p = polynomial(r, 0x1.000000000000ap-1, 0x1.55555555554fap-3, 0x1.5555555550853p-5, 0x1.1111111127c9cp-7,
                   0x1.6c16c18433bf1p-10, 0x1.a01a012a2b933p-13, 0x1.a01999f08ff4ep-16, 0x1.71df258b48171p-19,
                   0x1.28ad8dd00f107p-22, 0x1.ad7f5850cd798p-26);
  return {n, detail::fma(r * r, p, r)};
}

/// Returns y, which has the sign of x or is +0, with the sign of x: sums of terms with both signs lose the
/// sign of a zero.
template <class B> B with_sign(const B& y, const B& x) { return y | xsimd::bitofsign(x); }

/// Sine and cosine of x - q π/2, where q, in the last bits of `quarters`, is the integer that minimizes its
/// magnitude.
template <class B> struct Turned {
  B sine, cosine;
  IntegerBatch<B> quarters;

  auto odd() const { return xsimd::bool_cast((quarters & IntegerBatch<B>(1)) != IntegerBatch<B>(0)); }
};
/// Cody and Waite's reduction: π/2 in four parts. Up to this angle, the rounding errors of q times the first
/// three are negligible.
template <class B> inline constexpr typename B::value_type kLargestAngle =
    !kSingle<typename B::value_type> ? 10'000'000
    : kFused<typename B::arch_type>  ? 50'000
                                     : 800;
template <class B> Turned<B> turned(const B& x) {
  using T = typename B::value_type;
  const B rounder(kRounder<T>), last_bits = detail::fma(x, B(static_cast<T>(0.6366197723675814)), rounder),
                                q = last_bits - rounder;
  B r = x;
  if constexpr (kSingle<T>)
    for (const float p : {-0x1.921cp+0f, -0x1.daap-15f, -0x1.10b4p-30f, -0x1.84698ap-48f})
      r = detail::fma(q, B(p), r);
  else
    for (const double p : {-0x1.921fb54p+0, -0x1.10b46118p-30, -0x1.313198ap-61, -0x1.701b839a25205p-92})
      r = detail::fma(q, B(p), r);
  const B z = r * r;
  B sine, cosine;   // (sin r - r) / r³, cos r
  if constexpr (kSingle<T>) {
    sine = polynomial(z, -0x1.555544p-3, 0x1.110722p-7, -0x1.993aeep-13);
    cosine = polynomial(z, 1, -0.5, 0x1.55554ap-5, -0x1.6c0c18p-10, 0x1.99e384p-16);
  } else {
    sine = polynomial(z, -0x1.5555555555548p-3, 0x1.111111110f729p-7, -0x1.a01a019be8419p-13,
                      0x1.71de35546369cp-19, -0x1.ae5e4ae360087p-26, 0x1.5d8b25ff2900ep-33);
    cosine = polynomial(z, 1, -0.5, 0x1.555555555554ap-5, -0x1.6c16c16c14ed2p-10, 0x1.a01a019c712bdp-16,
                        -0x1.27e4f7dc9e239p-22, 0x1.1ee9cde049075p-29, -0x1.8f9f6801de0bap-37);
  }
  return {with_sign(detail::fma(r * z, sine, r), r), cosine, bits_of(last_bits)};
}
/// sin(x + ahead π/2), from the reduced x.
template <class B> B sine_of(Turned<B> t, int ahead) {
  t.quarters += IntegerBatch<B>(static_cast<Integer<B>>(ahead));
  const B negative = from_bits<B>((t.quarters & IntegerBatch<B>(2))
                                  << (kFractionBits<typename B::value_type> == 23 ? 30 : 62));
  return xsimd::select(t.odd(), t.cosine, t.sine) ^ negative;
}

template <class B>
[[gnu::noinline, gnu::cold]] B beyond_largest_angle(const B& x, const B& y, double (*f)(double)) {
  using T = typename B::value_type;
  alignas(64) T angle[B::size], value[B::size];
  x.store_aligned(angle);
  y.store_aligned(value);
  for (std::size_t i = 0; i < B::size; ++i)
    if (!(std::abs(angle[i]) <= kLargestAngle<B>))
      value[i] = static_cast<T>(f(static_cast<double>(angle[i])));
  return B::load_aligned(value);
}
/// Returns y, but f(x) for the elements of x that are too large for `turned`, NaN or infinite.
template <class B> B with_large(const B& x, const B& y, double (*f)(double)) {
  return rarely(!(xsimd::abs(x) <= B(kLargestAngle<B>)), y, [&] { return beyond_largest_angle(x, y, f); });
}

/// Applies f to each element, one after the other, in double.
template <class F, class B, class... More> B by_element(const F& f, const B& first, const More&... more) {
  using T = typename B::value_type;
  constexpr std::size_t n = sizeof...(More) + 1;
  alignas(64) T x[n][B::size];
  const auto run = [&]<std::size_t... I>(std::index_sequence<I...>, const auto&... all) {
    (all.store_aligned(x[I]), ...);
    for (std::size_t i = 0; i < B::size; ++i)
      x[0][i] = static_cast<T>(f(static_cast<double>(x[I][i])...));
  };
  run(std::make_index_sequence<n>{}, first, more...);
  return B::load_aligned(x[0]);
}

/// Applies f to elements of f32 or f64, as batches of f64.
template <class F, class B, class... More> B in_double(const F& f, const B& first, const More&... more) {
  if constexpr (!kSingle<typename B::value_type>) {
    return f(first, more...);
  } else if constexpr (kIsTraced<B>) {
    return not_traced(first);
  } else {
    using Wide = xsimd::batch<double, typename B::arch_type>;
    constexpr std::size_t n = sizeof...(More) + 1, lanes = B::size;
    alignas(64) float x[n][lanes];
    alignas(64) double wide[n][lanes];
    std::size_t at = 0;
    first.store_aligned(x[at++]);
    (more.store_aligned(x[at++]), ...);
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t i = 0; i < lanes; ++i)
        wide[k][i] = x[k][i];
    const auto run = [&]<std::size_t... K>(std::index_sequence<K...>) {
      for (std::size_t i = 0; i < lanes; i += Wide::size)
        f(Wide::load_aligned(wide[K] + i)...).store_aligned(wide[0] + i);
    };
    run(std::make_index_sequence<n>{});
    for (std::size_t i = 0; i < lanes; ++i)
      x[0][i] = static_cast<float>(wide[0][i]);
    return B::load_aligned(x[0]);
  }
}

}   // namespace detail

// More constrained than xsimd's functions of the same name, so that calls are not ambiguous.
template <class T>
concept Real = std::is_floating_point_v<T>;

template <class T, class A>
requires Real<T> xsimd::batch<T, A> exp(const xsimd::batch<T, A>& x) {
  const auto [n, q] = detail::exponential(x, detail::kSingle<T> ? -104 : -746, detail::kSingle<T> ? 89 : 710);
  return detail::scale(1 + q, n);
}

template <class T, class A>
requires Real<T> xsimd::batch<T, A> exp2(const xsimd::batch<T, A>& x) {
  using B = xsimd::batch<T, A>;
  const B bounded = xsimd::max(B(T(detail::kSingle<T> ? -151 : -1076)),
                               xsimd::min(B(T(detail::kSingle<T> ? 129 : 1025)), x)),
          rounder(detail::kRounder<T>), n = bounded + rounder - rounder;
  return detail::scale(exp((bounded - n) * T(0.6931471805599453)), n);
}

template <class T, class A>
requires Real<T> xsimd::batch<T, A> expm1(const xsimd::batch<T, A>& x) {
  using B = xsimd::batch<T, A>;
  const auto [n, q] = detail::exponential(x, detail::kSingle<T> ? -20 : -40, detail::kSingle<T> ? 89 : 710);
  const B half_power =
      detail::power_of_two(n + detail::kRounder<T>, -1);   // 2ⁿ may overflow although the result does not
  const B half = detail::fma(half_power, q, half_power - T(0.5));
  return detail::with_sign(xsimd::select(n == B(T(0)), q, half + half), x);
}

namespace detail {

/// x = 2ⁿ (1 + f), with an integer n and √½ ≤ 1 + f < √2, for normal x > 0.
template <class B> struct Scaled { B n, f; };
template <class B> Scaled<B> scaled(const B& x) {
  using T = typename B::value_type;
  using Bits = xsimd::batch<std::make_unsigned_t<Integer<B>>, typename B::arch_type>;
  using Word = typename Bits::value_type;
  const auto bits = [](T number) { return Bits(std::bit_cast<Word>(number)); };
  constexpr T least = static_cast<T>(kSingle<T> ? 0x1.6a09e6p-1 : 0x1.6a09e667f3bcdp-1),   // √½
      integers = static_cast<T>(kSingle<T> ? 0x1p23 : 0x1p52);   // whose last bit stands for 1
  constexpr Word bias = std::numeric_limits<T>::max_exponent - 1, mask = (Word(1) << kFractionBits<T>)-1;
  const Bits sum = xsimd::bitwise_cast<Bits>(x) - bits(least) + bits(1),
             fraction = (sum & Bits(mask)) + bits(least);
  const B n = xsimd::bitwise_cast<B>((sum >> kFractionBits<T>) | bits(integers)) - (integers + T(bias));
  return {n, xsimd::bitwise_cast<B>(fraction) - T(1)};
}

/// log(2ⁿ (1 + f)) + rest, for a small rest.
template <class B> B log_of(const Scaled<B>& x, const B& rest) {
  using T = typename B::value_type;
  // log(1 + f) = 2 artanh s = f - s f + s (z 2/3 + z² 2/5 + …), with s f = f²/2 - s f²/2.
  const B s = x.f / (T(2) + x.f), z = s * s, half_square = T(0.5) * x.f * x.f;
  B p;
  if constexpr (kSingle<T>)
    p = polynomial(z, 0x1.555556p-1, 0x1.9999ecp-2, 0x1.245c34p-2, 0x1.ddd19ap-3);
  else
    p = polynomial(z, 0x1.5555555555558p-1, 0x1.99999999952a7p-2, 0x1.2492492df7064p-2, 0x1.c71c62defb05bp-3,
                   0x1.7462b6570e25cp-3, 0x1.39fe2dde9544dp-3, 0x1.2b5a874911887p-3);
  // log 2 in two parts, of which the first times n is exact.
  const B high(static_cast<T>(kSingle<T> ? 0x1.62ep-1 : 0x1.62e42feep-1)),
      low(static_cast<T>(kSingle<T> ? 0x1.0bfbe8p-15 : 0x1.a39ef35793c76p-33));
  const B small = detail::fma(s, detail::fma(z, p, half_square), detail::fma(x.n, low, rest));
  return detail::fma(x.n, high, x.f - (half_square - small));
}

/// y for finite x > low; -∞ for x = low, ∞ for x = ∞, NaN for other x.
template <class B> B on_domain_of_log(const B& x, typename B::value_type low, const B& y) {
  using T = typename B::value_type;
  constexpr T inf = std::numeric_limits<T>::infinity();
  const B outside = xsimd::select(x == B(low), B(-inf), B(std::numeric_limits<T>::quiet_NaN()));
  return xsimd::select(x > B(low), xsimd::select(x < B(inf), y, x), outside);
}

}   // namespace detail

template <class T, class A>
requires Real<T> xsimd::batch<T, A> log(const xsimd::batch<T, A>& x) {
  using B = xsimd::batch<T, A>;
  constexpr int up = detail::kSingle<T> ? 25 : 54;   // makes subnormal numbers normal
  const auto tiny = x < B(std::numeric_limits<T>::min());
  auto parts =
      detail::scaled(xsimd::select(tiny, x * B(static_cast<T>(detail::kSingle<T> ? 0x1p25 : 0x1p54)), x));
  parts.n = parts.n - xsimd::select(tiny, B(T(up)), B(T(0)));
  return detail::on_domain_of_log(x, T(0), detail::log_of(parts, B(T(0))));
}

template <class T, class A>
requires Real<T> xsimd::batch<T, A> log1p(const xsimd::batch<T, A>& x) {
  using B = xsimd::batch<T, A>;
  const B u = T(1) + x, in_u = u - T(1), lost = (T(1) - (u - in_u)) + (x - in_u);   // u + lost = 1 + x
  const B y = detail::log_of(detail::scaled(u), lost / u);
  return detail::with_sign(detail::on_domain_of_log(x, T(-1), y), x);
}

template <class T, class A>
requires Real<T> xsimd::batch<T, A> sin(const xsimd::batch<T, A>& x) {
  return detail::with_large(x, detail::sine_of(detail::turned(x), 0), std::sin);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> cos(const xsimd::batch<T, A>& x) {
  return detail::with_large(x, detail::sine_of(detail::turned(x), 1), std::cos);
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> tan(const xsimd::batch<T, A>& x) {
  const auto t = detail::turned(x);
  const auto odd = t.odd();
  return detail::with_large(x, xsimd::select(odd, -t.cosine, t.sine) / xsimd::select(odd, t.sine, t.cosine),
                            std::tan);
}

template <class T, class A>
requires Real<T> xsimd::batch<T, A> tanh(const xsimd::batch<T, A>& x) {
  const xsimd::batch<T, A> e = expm1(T(-2) * xsimd::abs(x));
  return xsimd::copysign(e / (e + T(2)), x);
}

namespace detail {
/// eˣ / 2, which is finite where sinh and cosh are.
template <class T, class A> xsimd::batch<T, A> half_exp(const xsimd::batch<T, A>& x) {
  const auto [n, q] = exponential(x, kSingle<T> ? -104 : -746, kSingle<T> ? 90 : 711);
  return scale(1 + q, n - T(1));
}
}   // namespace detail

template <class T, class A>
requires Real<T> xsimd::batch<T, A> cosh(const xsimd::batch<T, A>& x) {
  const xsimd::batch<T, A> e = detail::half_exp(xsimd::abs(x));
  return e + T(0.25) / e;
}
template <class T, class A>
requires Real<T> xsimd::batch<T, A> sinh(const xsimd::batch<T, A>& x) {
  using B = xsimd::batch<T, A>;
  const B r = xsimd::abs(x), small = expm1(xsimd::min(r, B(T(1)))), e = detail::half_exp(r);
  return xsimd::copysign(
      xsimd::select(r < B(T(1)), T(0.5) * (small + small / (small + T(1))), e - T(0.25) / e), x);
}

/// 1 / (1 + e⁻ˣ), without a large e⁻ˣ.
template <class T, class A>
requires Real<T> xsimd::batch<T, A> sigmoid(const xsimd::batch<T, A>& x) {
  using B = xsimd::batch<T, A>;
  const B e = exp(-xsimd::abs(x));
  return xsimd::select(x < B(T(0)), e, B(T(1))) / (1 + e);
}

/// log(eᵃ + eᵇ), in f64 since the sum of both terms may be near 0. Where a and b are equal, including
/// infinities, their difference is not used.
template <class T, class A>
requires Real<T> xsimd::batch<T, A> logaddexp(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  return detail::in_double(
      [](const auto& x, const auto& y) {
        using B = std::decay_t<decltype(x)>;
        return xsimd::select(x < y, y, x) + log1p(exp(xsimd::select(x == y, B(0.0), -xsimd::abs(x - y))));
      },
      a, b);
}

/// The next representable number of the element type.
template <class T, class A>
requires Real<T> xsimd::batch<T, A> nextafter(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  using B = xsimd::batch<T, A>;
  using Bits = detail::IntegerBatch<B>;
  const B zero(T(0)), outwards = detail::from_bits<B>(Bits(1)), inwards = detail::from_bits<B>(Bits(-1));
  const B step = xsimd::select(((zero < a) & (a < b)) | ((a < zero) & (b < a)), outwards, inwards);
  const B next = detail::from_bits<B>(detail::bits_of(a) + detail::bits_of(step));
  const B moved = xsimd::select(a == zero, xsimd::copysign(B(std::numeric_limits<T>::denorm_min()), b), next);
  return xsimd::select((a == a) & (b == b), xsimd::select(a == b, b, moved), a + b);
}

}   // namespace tapedeck
