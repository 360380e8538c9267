// The loop of an elementwise op over f16 or bf16, which are converted in registers.
#pragma once
#include "core/half_vectors.h"

#ifdef TAPEDECK_HALF_VECTORS
#include "kernels/simd/simd.h"
#include "tapedeck/simd/pass.h"

namespace tapedeck::kernels {

/// A MapLoop<Half> with the bits of the loop over f32.
template <class F, __m512 wide(__m256i), __m512i narrow(__m512, __m512), std::size_t... I>
constexpr auto half_map_loop(std::index_sequence<I...>) {
  return [](Half* out, const Stream<Half>* x, std::int64_t n) {
    const Stream<Half> p[] = {x[I]...};
    for (std::int64_t i = 0; i < n; i += kGroup<Half>) {
      const auto result = [&](std::int64_t from) -> __m512 {
        return F{}(Batch<float>(
            wide(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p[I].p + (i & p[I].mask) + from))))...);
      };
      _mm512_storeu_si512(out + i, narrow(result(0), result(kGroup<Half> / 2)));
    }
  };
}

}   // namespace tapedeck::kernels
#endif
