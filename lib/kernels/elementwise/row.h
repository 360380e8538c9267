// Row: the operands of one row of an elementwise pass, and their tails.
#pragma once
#include <algorithm>

#include "core/parallel.h"
#include "kernels/elementwise/map.h"

namespace tapedeck::kernels {

/// Elements of an elementwise pass.
inline constexpr Cut kElementwise = {1 << 14, 1 << 17};

template <class T> std::int64_t whole(std::int64_t n) { return n / kGroup<T> * kGroup<T>; }
template <class T> std::int64_t padded(std::int64_t n) { return whole<T>(n + kGroup<T> - 1); }
template <class T> void copy_first(const T* from, std::int64_t n, T* group) {
  std::fill(std::copy(from, from + n, group), group + kGroup<T>, T(0));
}

/// Room for copies of the operands that do not advance, and of the row's tail.
template <class T, int most = kMaxOperands> struct Row {
  Stream<T> x[most] = {};
  alignas(64) T copies[most][kGroup<T>];

  void set(int i, const T* p, bool moves) {
    if (!moves) {
      std::fill_n(copies[i], kGroup<T>, *p);
      p = copies[i];
    }
    x[i] = {p, moves ? -1 : 0};
  }
  /// Moves what is left from element `from` on into the copies, so that a whole group can be read.
  void cut(std::int64_t from, std::int64_t n) {
    for (int i = 0; i < most; ++i) {
      if (!x[i].p || !x[i].mask) continue;
      copy_first(x[i].p + from, n - from, copies[i]);
      x[i].p = copies[i];
    }
  }
};

}   // namespace tapedeck::kernels
