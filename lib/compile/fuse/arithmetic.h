// The arithmetic of groups.
#pragma once
#include "compile/fuse/group_code.h"
#include "kernels/simd/simd.h"
#include "op/rules.h"
#include "tapedeck/simd/partials.h"

namespace tapedeck::compiled {

/// dy · the partial of an op with `inputs` operands. The partial reads only x, which is one of the operands
/// or the result.
template <int inputs, class F, class V> V times_partial(F, const V& dy, const V& x) {
  using P = detail::Partial<F, inputs>;
  if constexpr (inputs == 1)
    return dy * P::template at<V>(x, x);
  else
    return dy * P::template at<V>(x, x, x);
}

template <Arithmetic op, class V> V compute(const V& a, const V& b) {
  if constexpr (op == Arithmetic::add) return a + b;
  if constexpr (op == Arithmetic::sub) return a - b;
  if constexpr (op == Arithmetic::mul) return a * b;
  if constexpr (op == Arithmetic::div) return a / b;
  if constexpr (op == Arithmetic::maximum) return maximum(a, b);
  if constexpr (op == Arithmetic::minimum) return minimum(a, b);
  if constexpr (op == Arithmetic::of_square) return times_partial<1>(partial::of_square, a, b);
  if constexpr (op == Arithmetic::of_sqrt) return times_partial<1>(partial::of_sqrt, a, b);
  if constexpr (op == Arithmetic::of_log) return times_partial<1>(partial::of_log, a, b);
  if constexpr (op == Arithmetic::of_div_in_a) return times_partial<2>(partial::of_div_in_a, a, b);
  if constexpr (op == Arithmetic::of_tanh) return times_partial<1>(partial::of_tanh, a, b);
  if constexpr (op == Arithmetic::of_sigmoid) return times_partial<1>(partial::of_sigmoid, a, b);
  if constexpr (op == Arithmetic::neg) return -a;
  if constexpr (op == Arithmetic::sqrt) return sqrt(a);
  if constexpr (op == Arithmetic::exp) return exp(a);
  if constexpr (op == Arithmetic::log) return log(a);
  if constexpr (op == Arithmetic::tanh) return tanh(a);
  if constexpr (op == Arithmetic::sigmoid) return sigmoid(a);
}

template <Then then, class V> V product_and(const V& a, const V& b, const V& c) {
  const V product = a * b;
  if constexpr (then == Then::add) return product + c;
  if constexpr (then == Then::sub) return product - c;
  if constexpr (then == Then::sub_from) return c - product;
}

}   // namespace tapedeck::compiled
