// The loop of an elementwise op over f16 or bf16 numbers, which are converted in registers.
#pragma once
#include "core/cast.h"
#include "core/half_vectors.h"
#include "kernels/simd/simd.h"
#include "tapedeck/simd/pass.h"

namespace tapedeck::kernels {

/// Halves as two vectors of f32, in an order that depends on the type.
struct Singles {
  Batch<float> a, b;
};

/// The bf16 numbers at even positions, and those at odd positions, which are the upper halves of 32-bit
/// words.
struct PairsOfBf16 {
  using Bits = Batch<std::uint32_t>;

  static Singles load(const Half* p) {
    const Bits both = Bits::load_unaligned(reinterpret_cast<const std::uint32_t*>(p));
    return {single(both << 16), single(both & Bits(0xffff0000))};
  }
  static void store(const Singles& x, Half* p) {
#ifdef TAPEDECK_PAIRED_BF16
    store_halves(paired_bf16(x.a, x.b), p);
#else
    Bits even = rounded(x.a), odd = rounded(x.b);
    if (const auto a = x.a != x.a, b = x.b != x.b; xsimd::any(a || b)) [[unlikely]] {
      even = bits_of(xsimd::select(a, quiet(x.a), single(even)));
      odd = bits_of(xsimd::select(b, quiet(x.b), single(odd)));
    }
    ((even >> 16) | (odd & Bits(0xffff0000))).store_unaligned(reinterpret_cast<std::uint32_t*>(p));
#endif
  }

 private:
  static Batch<float> single(const Bits& bits) { return xsimd::bitwise_cast<Batch<float>>(bits); }
  static Bits bits_of(const Batch<float>& x) { return xsimd::bitwise_cast<Bits>(x); }
  // Rounds f32 numbers other than NaN, so that the upper halves of their bits are the nearest bf16.
  static Bits rounded(const Batch<float>& x) {
    const Bits bits = bits_of(x);
    return bits + Bits(0x7fff) + ((bits >> 16) & Bits(1));
  }
  static Batch<float> quiet(const Batch<float>& nan) { return single(bits_of(nan) | Bits(1 << 22)); }
};

#ifdef TAPEDECK_HALF_VECTORS
/// The first half of the f16 numbers, and the second half.
struct PairsOfF16 {
  static Singles load(const Half* p) {
    return {wide_f16(load_halves(p)), wide_f16(load_halves(p + kWidth<float>))};
  }
  static void store(const Singles& x, Half* p) { store_halves(narrowed_f16(x.a, x.b), p); }
};
#endif

/// A MapLoop<Half> whose results have the same bits as those of the f32 loop on converted elements.
template <class F, class Pairs, std::size_t... I> constexpr auto half_map_loop(std::index_sequence<I...>) {
  return [](Half* out, const Stream<Half>* x, std::int64_t n) {
    const Stream<Half> p[] = {x[I]...};
    for (std::int64_t i = 0; i < n; i += 2 * kWidth<float>) {
      const Singles in[] = {Pairs::load(p[I].p + (i & p[I].mask))...};
      Pairs::store({F{}(in[I].a...), F{}(in[I].b...)}, out + i);
    }
  };
}

}   // namespace tapedeck::kernels
