// Loops of f32 over rows of f16 and bf16: block by block, through buffers that stay in the L1 cache.
#pragma once
#include "core/cast.h"
#include "kernels/elementwise/row.h"

namespace tapedeck::kernels {

inline constexpr std::int64_t kHalfBlock = 512;   // elements: whole groups of f32 and of halves

/// The operands of blocks of a row in f32. Those that do not move are converted once.
template <int most> class HalfOperands {
 public:
  HalfOperands(DType dtype, const Stream<Half>* x, int operands) : dtype_(dtype), x_(x), operands_(operands) {
    for (int i = 0; i < operands; ++i) {
      row[i] = {buffers_[i], x[i].mask};
      if (x[i].p && !x[i].mask) widen(dtype, x[i].p, buffers_[i], kGroup<float>);
    }
  }
  /// n elements, and zeros up to a whole group.
  void load(std::int64_t begin, std::int64_t n) {
    for (int i = 0; i < operands_; ++i) {
      if (!x_[i].mask) continue;
      widen(dtype_, x_[i].p + begin, buffers_[i], n);
      std::fill(buffers_[i] + n, buffers_[i] + padded<float>(n), 0.0f);
    }
  }

  Stream<float> row[most];

 private:
  DType dtype_;
  const Stream<Half>* x_;
  int operands_;
  alignas(64) float buffers_[most][kHalfBlock];
};

/// A forward loop.
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
      loop(y, in.row, count);
      narrow(dtype, y, out + i, count);
    }
  }
};

/// The loop of a backward pass, over any number of elements. It does not sum, which takes more bits than
/// results have.
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
      block.n = padded<float>(n);
      in.load(i, n);
      for (int k = 0; k < results; ++k)
        if (r.put[k] == Put::add && first_of(r, k) == k) widen(dtype, r.out[k] + i, out[k], n);
      loop(block);
      for (int k = 0; k < results; ++k)
        if (r.put[k] != Put::nothing && first_of(r, k) == k) narrow(dtype, out[k], r.out[k] + i, n);
    }
  }
  /// The first result that is put where result k is.
  static int first_of(const PassRow<Half, I, O>& r, int k) {
    int i = 0;
    while (i < k && (r.put[i] == Put::nothing || r.out[i] != r.out[k]))
      ++i;
    return i;
  }
};

}   // namespace tapedeck::kernels
