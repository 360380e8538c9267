// Row: the operands of one row of an elementwise pass, readable as whole groups of 64 bytes.
#pragma once
#include <algorithm>

#include "core/parallel.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/simd/simd.h"
#include "tapedeck/simd/pass.h"

namespace tapedeck::kernels {

/// How elementwise passes are cut for threads, in elements.
inline constexpr Cut kElementwise = {1 << 14, 1 << 17};

/// n rounded down, and up, to whole groups.
template <class T> std::int64_t whole(std::int64_t n) { return n / kGroup<T> * kGroup<T>; }
template <class T> std::int64_t padded(std::int64_t n) { return whole<T>(n + kGroup<T> - 1); }
/// A group of n elements and zeros.
template <class T> void copy_first(const T* from, std::int64_t n, T* group) {
  std::fill(std::copy(from, from + n, group), group + kGroup<T>, T{});
}

/// The operands, with copies of those elements that are not a group in memory: one that stands for the whole
/// row, and the last ones of a row.
template <class T, int most = kMaxOperands> struct Row {
  Stream<T> x[most] = {};
  alignas(64) T copies[most][kGroup<T>];

  /// Operand i is the row at p, or, if it does not move, the one element there.
  void set(int i, const T* p, bool moves) {
    if (!moves) {
      std::fill_n(copies[i], kGroup<T>, *p);
      p = copies[i];
    }
    x[i] = {p, moves ? -1 : 0};
  }
  /// Goes on with a copy of the elements [from, n), which is a whole group.
  void cut(std::int64_t from, std::int64_t n) {
    for (int i = 0; i < most; ++i) {
      if (!x[i].p || !x[i].mask) continue;
      copy_first(x[i].p + from, n - from, copies[i]);
      x[i].p = copies[i];
    }
  }
};

}   // namespace tapedeck::kernels
