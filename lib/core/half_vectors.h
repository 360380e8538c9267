// Vectors of f16 and bf16 by AVX-512, where compilers do not find the instructions.
#pragma once

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define TAPEDECK_HALF_VECTORS 1
#include <bit>
#include <cstdint>

#include <immintrin.h>

namespace tapedeck {

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
  // Its instruction takes subnormal numbers for 0.
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
#endif
