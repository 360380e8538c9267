// Conversion of elements. The loops are compiled here, once.
#include "core/cast.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/bytes.h"
#include "core/convert.h"
#include "core/format.h"
#include "core/half_vectors.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "core/visit.h"

namespace tapedeck {
namespace {

constexpr std::int64_t kCastGrain = 1 << 16;   // least elements per thread

// Converts whole vectors of f16 and bf16; returns the number of elements converted, which is n with AVX-512.
#if defined(__AVX512BW__) && defined(__AVX512VL__)
__mmask16 first_lanes(std::int64_t n) { return static_cast<__mmask16>((1U << n) - 1); }
template <__m512 wide(__m256i)> std::int64_t widen_vectors(const Half* x, float* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(y + i, wide(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i))));
  if (const __mmask16 rest = first_lanes(n - i); rest)
    _mm512_mask_storeu_ps(y + i, rest, wide(_mm256_maskz_loadu_epi16(rest, x + i)));
  return n;
}
std::int64_t widen_f16(const Half* x, float* y, std::int64_t n) { return widen_vectors<wide_f16>(x, y, n); }
std::int64_t widen_bf16(const Half* x, float* y, std::int64_t n) { return widen_vectors<wide_bf16>(x, y, n); }

std::int64_t narrow_bf16(const float* x, Half* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 32 <= n; i += 32)
    _mm512_storeu_si512(y + i, narrowed_bf16(_mm512_loadu_ps(x + i), _mm512_loadu_ps(x + i + 16)));
  for (; i < n; i += 16) {
    const __mmask16 rest = first_lanes(std::min<std::int64_t>(n - i, 16));
    const __m512 some = _mm512_maskz_loadu_ps(rest, x + i);
    _mm256_mask_storeu_epi16(y + i, rest, _mm512_castsi512_si256(narrowed_bf16(some, some)));
  }
  return n;
}
std::int64_t narrow_f16(const float* x, Half* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), _mm512_cvtps_ph(_mm512_loadu_ps(x + i), 0));
  if (const __mmask16 rest = first_lanes(n - i); rest)
    _mm256_mask_storeu_epi16(y + i, rest, _mm512_cvtps_ph(_mm512_maskz_loadu_ps(rest, x + i), 0));
  return n;
}
#elif defined(TAPEDECK_HALF_VECTORS)
template <__m256 wide(__m128i)> std::int64_t widen_vectors(const Half* x, float* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i, wide(load_halves(x + i)));
  return i;
}
template <__m256i narrow(__m256, __m256)>
std::int64_t narrow_vectors(const float* x, Half* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    store_halves(narrow(_mm256_loadu_ps(x + i), _mm256_loadu_ps(x + i + 8)), y + i);
  return i;
}
std::int64_t widen_f16(const Half* x, float* y, std::int64_t n) { return widen_vectors<wide_f16>(x, y, n); }
std::int64_t widen_bf16(const Half* x, float* y, std::int64_t n) { return widen_vectors<wide_bf16>(x, y, n); }
std::int64_t narrow_f16(const float* x, Half* y, std::int64_t n) {
  return narrow_vectors<narrowed_f16>(x, y, n);
}
std::int64_t narrow_bf16(const float* x, Half* y, std::int64_t n) {
  return narrow_vectors<narrowed_bf16>(x, y, n);
}
#else
std::int64_t widen_f16(const Half*, float*, std::int64_t) { return 0; }
std::int64_t widen_bf16(const Half*, float*, std::int64_t) { return 0; }
std::int64_t narrow_f16(const float*, Half*, std::int64_t) { return 0; }
std::int64_t narrow_bf16(const float*, Half*, std::int64_t) { return 0; }
#endif

template <class To, class From> [[gnu::noinline]] void convert_row(const void* x, void* y, std::int64_t n) {
  const auto* in = static_cast<const From*>(x);
  std::transform(in, in + n, static_cast<To*>(y), convert<To, From>);
}
// The type to which From is converted in the place of To: integers to unsigned integers, with the same bits.
template <class To, class From> struct Converted { using type = To; };
template <class To, class From>
requires(std::is_integral_v<To>&& std::is_integral_v<From> &&
         !std::is_same_v<To, bool>) struct Converted<To, From> {
  using type = std::make_unsigned_t<To>;
};

// Converts from a dtype that ops compute in, or u64, to any dtype. Converts bool as the numbers 0 and 1.
void convert_from_computed(DType from, const void* x, DType to, void* y, std::int64_t n) {
  const auto run = [&]<class From>(From) {
    visit_stored(to, [&]<class To>(To) { convert_row<typename Converted<To, From>::type, From>(x, y, n); });
  };
  switch (from) {
    case DType::boolean:
    case DType::u8:
      return run(std::uint8_t{});
    case DType::u64:
      return run(std::uint64_t{});
    case DType::i8:
      return run(std::int8_t{});
    case DType::i32:
      return run(std::int32_t{});
    case DType::i64:
      return run(std::int64_t{});
    default:
      return visit_trainable(from, run);
  }
}

// The exact value of a half in f32, and of a small integer in i64.
void convert_to_computed(DType from, const void* x, void* y, std::int64_t n) {
  const auto run = [&]<class From>(From) {
    const auto* in = static_cast<const From*>(x);
    std::copy(in, in + n, static_cast<std::int64_t*>(y));
  };
  if (is_half(from))
    widen(from, static_cast<const Half*>(x), static_cast<float*>(y), n);
  else if (from == DType::i16)
    run(std::int16_t{});
  else if (from == DType::u16)
    run(std::uint16_t{});
  else
    run(std::uint32_t{});
}

}   // namespace

void widen(DType t, const Half* x, float* y, std::int64_t n) {
  if (t == DType::bf16)
    for (std::int64_t i = widen_bf16(x, y, n); i < n; ++i)
      y[i] = detail::bfloat16_value(x[i].bits);
  else
    for (std::int64_t i = widen_f16(x, y, n); i < n; ++i)
      y[i] = detail::float16_value(x[i].bits);
}
void narrow(DType t, const float* x, Half* y, std::int64_t n) {
  if (t == DType::bf16)
    for (std::int64_t i = narrow_bf16(x, y, n); i < n; ++i)
      y[i].bits = detail::bfloat16_bits(x[i]);
  else
    for (std::int64_t i = narrow_f16(x, y, n); i < n; ++i)
      y[i].bits = detail::float16_bits(x[i]);
}

void convert_elements(DType from, const void* x, DType to, void* y, std::int64_t n) {
  if (is_computed(from) || from == DType::u64) {
    if (from == DType::f32 && is_half(to))
      return narrow(to, static_cast<const float*>(x), static_cast<Half*>(y), n);
    return convert_from_computed(from, x, to, y, n);
  }
  if (from == to) return void(std::memmove(y, x, static_cast<std::size_t>(n * size_of(to))));
  if (computed_in(from) == to) return convert_to_computed(from, x, y, n);
  constexpr std::int64_t most = 512;
  alignas(64) std::int64_t block[most];
  for (std::int64_t i = 0; i < n; i += most) {
    const std::int64_t count = std::min(most, n - i);
    convert_to_computed(from, static_cast<const std::byte*>(x) + i * size_of(from), block, count);
    convert_from_computed(computed_in(from), block, to, static_cast<std::byte*>(y) + i * size_of(to), count);
  }
}

void cast(const Tensor& x, Tensor& y) {
  const std::int64_t from = size_of(x.dtype()), to = size_of(y.dtype());
  parallel_for(x.size(), kCastGrain, [&](std::int64_t begin, std::int64_t end) {
    convert_elements(x.dtype(), x.raw() + begin * from, y.dtype(), y.raw() + begin * to, end - begin);
  });
}
Tensor cast(const Tensor& x, DType to) {
  Tensor y = allocate({to, x.shape()});
  cast(x, y);
  return y;
}

void fill(Tensor& y, double value) {
  visit_stored(y.dtype(), [&](auto t) {
    using T = decltype(t);
    parallel_for(y.size(), Cut{1 << 15, 1 << 17},
                 [out = elements<T>(y), v = convert<T>(value)](std::int64_t begin, std::int64_t end) {
                   std::fill(out + begin, out + end, v);
                 });
  });
}

Tensor to_computed(const Tensor& x) {
  const DType to = computed_in(x.dtype());
  if (to == x.dtype()) return x;
  if (x.dtype() == DType::u64)
    for (const std::uint64_t v : x.data<std::uint64_t>())
      if (v > INT64_MAX)
        throw_error<ArgumentError>("u64 is computed in i64, which has no {}; use astype: x is {}", v,
                                   x.spec());
  return cast(x, to);
}

Tensor to_i64(const Tensor& integers) {
  return is_computed(integers.dtype()) ? cast(integers, DType::i64) : to_computed(integers);
}

}   // namespace tapedeck
