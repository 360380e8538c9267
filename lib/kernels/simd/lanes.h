// Loops over vectors of elements with a scalar tail. Vector and scalar code produce the same bits.
#pragma once
#include "kernels/simd/simd.h"

namespace tapedeck::kernels {

template <class V, class T> V load(const T* p) {
  if constexpr (std::is_same_v<V, T>)
    return *p;
  else
    return V::load_unaligned(p);
}
template <class T> void store(T v, T* p) { *p = v; }
template <class T> void store(const Batch<T>& v, T* p) { v.store_unaligned(p); }
template <class T> T choose(bool c, T a, T b) { return c ? a : b; }
template <class T> Batch<T> choose(const xsimd::batch_bool<T>& c, const Batch<T>& a, const Batch<T>& b) {
  return xsimd::select(c, a, b);
}

/// Calls f(i, V()) for all i < n, with a vector type V while whole vectors remain, then with the element
/// type.
template <class T, class F> void each_group(std::int64_t n, const F& f) {
  std::int64_t i = 0;
  for (; i + kWidth<T> <= n; i += kWidth<T>)
    f(i, Batch<T>());
  for (; i < n; ++i)
    f(i, T());
}

/// The sum of f(i, V()) over all i < n, with four accumulators to hide the latency of additions.
template <class T, class F> T sum_of(std::int64_t n, const F& f) {
  constexpr std::int64_t w = kWidth<T>;
  Batch<T> sums[4] = {Batch<T>(T(0)), Batch<T>(T(0)), Batch<T>(T(0)), Batch<T>(T(0))};
  std::int64_t i = 0;
  for (; i + 4 * w <= n; i += 4 * w)
    for (std::int64_t k = 0; k < 4; ++k)
      sums[k] += f(i + k * w, Batch<T>());
  for (; i + w <= n; i += w)
    sums[0] += f(i, Batch<T>());
  T total = xsimd::hadd((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; i < n; ++i)
    total += f(i, T());
  return total;
}

}   // namespace tapedeck::kernels
