// Piecewise constant partials, such as those of maxima. Their derivatives of any order are zeros. On tensors,
// the op `piecewise` makes tapes record that; on vectors, it does nothing.
#pragma once
#include <type_traits>

#include "op/probe.h"
#include "tapedeck/op.h"
#include "tapedeck/simd/elementary.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Returns p, recorded with a derivative of zeros in x; p itself if nothing records.
Tensor piecewise_in(const Tensor& p, const Tensor& x);

/// Returns p, recorded with a derivative of zeros in each x.
template <class V, class... X> V piecewise(const V& p, const X&... x) {
  V y = p;
  if constexpr (std::is_same_v<V, Tensor>) ((y = piecewise_in(y, x)), ...);
  return y;
}
template <unsigned P, unsigned... X> constexpr Probe<(P | ... | X)> piecewise(Probe<P>, Probe<X>...) {
  return {};
}

/// Returns zeros of the type of x, recorded with a derivative of zeros in x.
template <class T, class A> xsimd::batch<T, A> zero_in(const xsimd::batch<T, A>&) {
  return xsimd::batch<T, A>(T(0));
}
template <unsigned A> constexpr Probe<A> zero_in(Probe<A>) { return {}; }
Tensor zero_in(const Tensor& x);

/// Returns the rule, marked as having zeros as derivatives in these inputs (bit i: input i).
constexpr Rule with_zeros_in(std::uint8_t inputs, Rule rule) {
  rule.zero_in = inputs;
  return rule;
}

}   // namespace tapedeck
