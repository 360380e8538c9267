// Conversions of vectors of f16 and bf16, in order, for which compilers do not find the instructions.
#pragma once

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define TAPEDECK_HALF_VECTORS 1
#include <bit>
#include <cstdint>

#include <immintrin.h>

namespace tapedeck {

inline __m256i load_halves(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline void store_halves(__m512i bits, void* p) { _mm512_storeu_si512(p, bits); }

inline __m512 wide_f16(__m256i bits) { return _mm512_cvtph_ps(bits); }
inline __m512 wide_bf16(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

namespace detail {

/// f32 whose upper halves are rounded.
inline __m512i rounded_bf16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(1 << 16)),
                  nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i sum = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
  return _mm512_mask_or_epi32(_mm512_mask_add_epi32(sum, odd, sum, _mm512_set1_epi32(1)), nan, bits,
                              _mm512_set1_epi32(1 << 22));
}
inline __m512i upper_halves(__m512i low, __m512i high) {
  alignas(64) std::int16_t odd_words[32];
  for (std::int16_t k = 0; k < 32; ++k)
    odd_words[k] = static_cast<std::int16_t>(2 * k + 1);
  return _mm512_permutex2var_epi16(low, _mm512_load_si512(odd_words), high);
}

}   // namespace detail

/// The 32 elements of both, rounded.
inline __m512i narrowed_bf16(__m512 low, __m512 high) {
#ifdef __AVX512BF16__
  // The instruction treats subnormal numbers as 0.
  constexpr int kSubnormal = 0x20;
  if (_kortestz_mask16_u8(_mm512_fpclass_ps_mask(low, kSubnormal), _mm512_fpclass_ps_mask(high, kSubnormal)))
      [[likely]]
    return std::bit_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
#endif
  return detail::upper_halves(detail::rounded_bf16(low), detail::rounded_bf16(high));
}
inline __m512i narrowed_f16(__m512 low, __m512 high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(low, 0)), _mm512_cvtps_ph(high, 0), 1);
}

}   // namespace tapedeck

#elif defined(__AVX2__) && defined(__F16C__)
#define TAPEDECK_HALF_VECTORS 1
#include <immintrin.h>

namespace tapedeck {

inline __m128i load_halves(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline void store_halves(__m256i bits, void* p) { _mm256_storeu_si256(static_cast<__m256i*>(p), bits); }

inline __m256 wide_f16(__m128i bits) { return _mm256_cvtph_ps(bits); }
inline __m256 wide_bf16(__m128i bits) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

namespace detail {

/// x with NaN quiet, and without the bits of it that bf16 does not have.
inline __m256i quiet_bf16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x),
                short_bits = _mm256_and_si256(bits, _mm256_set1_epi32(-0x10000)),
                quiet = _mm256_or_si256(short_bits, _mm256_set1_epi32(1 << 22)),
                nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(bits, quiet, nan);
}

}   // namespace detail

/// The 8 elements of both, rounded: elements of `even` at even indices, elements of `odd` at odd indices.
#define TAPEDECK_PAIRED_BF16 1
inline __m256i paired_bf16(__m256 even, __m256 odd) {
  __m256i a = _mm256_castps_si256(even), b = _mm256_castps_si256(odd);
  if (_mm256_movemask_ps(_mm256_cmp_ps(even, odd, _CMP_UNORD_Q)) != 0) [[unlikely]]
    a = detail::quiet_bf16(even), b = detail::quiet_bf16(odd);
  constexpr int odd_places = 0b10101010;
  const __m256i kept = _mm256_blend_epi16(_mm256_srli_epi32(a, 16), b, odd_places),
                lost = _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), odd_places);
  // Up if more than a half is lost, or a half of an odd number: if lost - (1 if kept is even), not below 0,
  // has its first bit.
  const __m256i is_even = _mm256_andnot_si256(kept, _mm256_set1_epi16(1)),
                up = _mm256_srli_epi16(_mm256_subs_epu16(lost, is_even), 15);
  return _mm256_add_epi16(kept, up);
}
/// The 16 elements of both, rounded.
inline __m256i narrowed_bf16(__m256 low, __m256 high) {
  const __m256i order =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
  return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(paired_bf16(low, high), order),
                                  _MM_SHUFFLE(3, 1, 2, 0));
}
inline __m256i narrowed_f16(__m256 low, __m256 high) {
  return _mm256_set_m128i(_mm256_cvtps_ph(high, 0), _mm256_cvtps_ph(low, 0));
}

}   // namespace tapedeck
#endif
