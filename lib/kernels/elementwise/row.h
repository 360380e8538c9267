// Row: the operands of one row of an elementwise pass, which can be read in whole groups of 64 bytes.
#pragma once
#include <algorithm>

#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/limits.h"
#include "kernels/simd/simd.h"
#include "tapedeck/simd/pass.h"

namespace tapedeck::kernels {

/// n, rounded down (whole) or up (padded) to whole groups.
template <class T> std::int64_t whole(std::int64_t n) { return n / kGroup<T> * kGroup<T>; }
template <class T> std::int64_t padded(std::int64_t n) { return whole<T>(n + kGroup<T> - 1); }
/// Fills a group with n elements and zeros.
template <class T> void copy_first(const T* from, std::int64_t n, T* group) {
  std::fill(std::copy(from, from + n, group), group + kGroup<T>, T{});
}

/// The operands, and copies of elements that do not fill a group in memory: a single element that is used for
/// the whole row, and the last elements of a row.
template <class T, int most = kMaxOperands> struct Row {
  Stream<T> x[most] = {};
  alignas(64) T copies[most][kGroup<T>];

  /// Sets operand i to the row at p, or, if it does not move, to the single element there.
  void set(int i, const T* p, bool moves) {
    if (!moves) {
      std::fill_n(copies[i], kGroup<T>, *p);
      p = copies[i];
    }
    x[i] = {p, moves ? -1 : 0};
  }
  /// Sets all operands that move to copies of their elements [from, n), filled up to a whole group.
  void cut(std::int64_t from, std::int64_t n) {
    for (int i = 0; i < most; ++i) {
      if (!x[i].p || !x[i].mask) continue;
      copy_first(x[i].p + from, n - from, copies[i]);
      x[i].p = copies[i];
    }
  }
};

}   // namespace tapedeck::kernels
