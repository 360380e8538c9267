// Comparisons, logic and selection as compiled functions compute them: in groups, on numbers alone, and on
// few elements, without the set-up of the kernels.
#pragma once
#include "kernels/elementwise/map.h"

namespace tapedeck::kernels {

/// Sets n bools. Bit i of `singles`: operand i has one element. An op of one operand gets it twice.
using DecisionLoop = void (*)(const std::byte* a, const std::byte* b, bool* y, std::int64_t n,
                              unsigned singles);

struct Decision {
  MapKernel numbers;   // of operands and results of one dtype, in which bools are the numbers 0 and 1
  DecisionLoop f32 = nullptr, f64 = nullptr, i64 = nullptr, boolean = nullptr;   // by dtype of the operands
};

/// The loop of F(a, b).
template <class T, class F>
void decide_few(const std::byte* a, const std::byte* b, bool* y, std::int64_t n, unsigned singles) {
  const T *p = reinterpret_cast<const T*>(a), *q = reinterpret_cast<const T*>(b);
  if (n == 1) {   // skips the set-up of the vectorized loop
    *y = F()(*p, *q);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = F()(p[singles & 1 ? 0 : i], q[singles & 2 ? 0 : i]);
}

struct Choose {
  template <class V> V operator()(const V& condition, const V& a, const V& b) const {
    return xsimd::select(condition == V(0), b, a);
  }
};
inline constexpr Decision kChoice = {map_kernel<Choose, 3>};

}   // namespace tapedeck::kernels
