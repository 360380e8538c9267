// Some elements at a time: a vector of them, or a single number for those that are left. Both make the same bits.
#pragma once
#include "kernels/simd.h"

namespace tapedeck::kernels {

template <class V, class T> V load(const T* p) {
  if constexpr (std::is_same_v<V, T>) return *p;
  else return V::load_unaligned(p);
}
template <class T> void store(T v, T* p) { *p = v; }
template <class T> void store(const Batch<T>& v, T* p) { v.store_unaligned(p); }
template <class T> T choose(bool c, T a, T b) { return c ? a : b; }
template <class T> Batch<T> choose(const xsimd::batch_bool<T>& c, const Batch<T>& a, const Batch<T>& b) { return xsimd::select(c, a, b); }

/// f(i, V()) for all i < n, a vector of them at a time and then one by one.
template <class T, class F> void each_group(std::int64_t n, const F& f) {
  std::int64_t i = 0;
  for (; i + kWidth<T> <= n; i += kWidth<T>) f(i, Batch<T>());
  for (; i < n; ++i) f(i, T());
}

}  // namespace tapedeck::kernels
