// Loops of f32 over rows of f16 and bf16: block by block, through buffers that stay in the L1 cache.
#pragma once
#include "core/cast.h"
#include "kernels/elementwise/half_loop.h"
#include "kernels/elementwise/limits.h"
#include "kernels/elementwise/row.h"

namespace tapedeck::kernels {

/// Loops over halves process whole groups of kHalfGroup elements, which are whole groups of f32 and whole
/// pairs of vectors.
inline constexpr std::int64_t kHalfGroup = std::max(kGroup<float>, 2 * kWidth<float>);
inline std::int64_t padded_half(std::int64_t n) { return (n + kHalfGroup - 1) / kHalfGroup * kHalfGroup; }
/// n, rounded up to whole groups of the loop over elements of type T.
template <class T> std::int64_t padded_few(std::int64_t n) {
  return std::is_same_v<T, Half> ? padded_half(n) : padded<T>(n);
}

/// widen_by converts n halves to f32, in the order of Pairs, and fills up a whole group with zeros; narrow_by
/// converts back.
template <class Pairs> void widen_by(const Half* x, float* y, std::int64_t n) {
  const auto put = [](const Half* from, float* to) {
    const Singles in = Pairs::load(from);
    in.a.store_unaligned(to), in.b.store_unaligned(to + kWidth<float>);
  };
  std::int64_t i = 0;
  for (; i + 2 * kWidth<float> <= n; i += 2 * kWidth<float>)
    put(x + i, y + i);
  if (i == n && n % kHalfGroup == 0) return;
  Half last[kHalfGroup] = {};
  std::copy(x + i, x + n, last);
  for (const Half* p = last; i < padded_half(n); i += 2 * kWidth<float>, p += 2 * kWidth<float>)
    put(p, y + i);
}
template <class Pairs> void narrow_by(const float* x, Half* y, std::int64_t n) {
  const auto put = [](const float* from, Half* to) {
    Pairs::store({Batch<float>::load_unaligned(from), Batch<float>::load_unaligned(from + kWidth<float>)},
                 to);
  };
  std::int64_t i = 0;
  for (; i + 2 * kWidth<float> <= n; i += 2 * kWidth<float>)
    put(x + i, y + i);
  if (i == n) return;
  Half last[2 * kWidth<float>];
  put(x + i, last);
  std::copy(last, last + (n - i), y + i);
}
/// Conversions in the order that is fastest, which is the same in both directions. With AVX-512 it is the
/// original order.
#if defined(TAPEDECK_PAIRED_BF16) || !defined(TAPEDECK_HALF_VECTORS)
inline constexpr bool kBf16InPairs = true;
#else
inline constexpr bool kBf16InPairs = false;
#endif
inline void widen_any_order(DType t, const Half* x, float* y, std::int64_t n) {
  if (kBf16InPairs && t == DType::bf16) return widen_by<PairsOfBf16>(x, y, n);
  widen(t, x, y, n);
  std::fill(y + n, y + padded_half(n), 0.0f);
}
inline void narrow_any_order(DType t, const float* x, Half* y, std::int64_t n) {
  if (kBf16InPairs && t == DType::bf16) return narrow_by<PairsOfBf16>(x, y, n);
  narrow(t, x, y, n);
}

/// The operands of a row in f32, block by block. Operands that do not move are converted once.
template <int most> class HalfOperands {
 public:
  HalfOperands(DType dtype, const Stream<Half>* x, int operands) : dtype_(dtype), x_(x), operands_(operands) {
    for (int i = 0; i < operands; ++i) {
      row[i] = {buffers_[i], x[i].mask};
      if (x[i].p && !x[i].mask) widen(dtype, x[i].p, buffers_[i], kGroup<float>);
    }
  }
  /// Converts n elements, in any order, and fills up a whole group with zeros.
  void load(std::int64_t begin, std::int64_t n) {
    for (int i = 0; i < operands_; ++i)
      if (x_[i].mask) widen_any_order(dtype_, x_[i].p + begin, buffers_[i], n);
  }

  Stream<float> row[most];

 private:
  DType dtype_;
  const Stream<Half>* x_;
  int operands_;
  alignas(64) float buffers_[most][kHalfBlock];
};

/// A forward loop over any number of elements, by a loop over f32.
struct HalfMapLoop {
  DType dtype;
  MapLoop<float> loop;
  int operands;

  void operator()(Half* out, const Stream<Half>* x, std::int64_t n) const {
    HalfOperands<kMaxOperands> in(dtype, x, operands);
    alignas(64) float y[kHalfBlock];
    for (std::int64_t i = 0; i < n; i += kHalfBlock) {
      const std::int64_t count = std::min(kHalfBlock, n - i);
      in.load(i, count);
      loop(y, in.row, padded_half(count));
      narrow_any_order(dtype, y, out + i, count);
    }
  }
};

/// The loop of a backward pass over any number of elements, by a loop over f32. It does not support sums,
/// which need a higher precision than the results have.
template <int I, int O> struct HalfPassLoop {
  DType dtype;
  void (*loop)(const PassRow<float, I, O>&);
  int operands, results;

  void operator()(const PassRow<Half, I, O>& r) const {
    HalfOperands<I> in(dtype, r.x, operands);
    alignas(64) float out[O][kHalfBlock];
    PassRow<float, I, O> block{};
    std::copy(in.row, in.row + operands, block.x);
    std::copy(r.put, r.put + O, block.put);
    for (int k = 0; k < results; ++k)
      block.out[k] = out[first_of(r, k)];
    for (std::int64_t i = 0; i < r.n; i += kHalfBlock) {
      const std::int64_t n = std::min(kHalfBlock, r.n - i);
      block.n = padded_half(n);
      in.load(i, n);
      for (int k = 0; k < results; ++k)
        if (r.put[k] == Put::add && first_of(r, k) == k) widen_any_order(dtype, r.out[k] + i, out[k], n);
      loop(block);
      for (int k = 0; k < results; ++k)
        if (r.put[k] != Put::nothing && first_of(r, k) == k) narrow_any_order(dtype, out[k], r.out[k] + i, n);
    }
  }
  /// The first result with the same address as result k.
  static int first_of(const PassRow<Half, I, O>& r, int k) {
    int i = 0;
    while (i < k && (r.put[i] == Put::nothing || r.out[i] != r.out[k]))
      ++i;
    return i;
  }
};

}   // namespace tapedeck::kernels
