// Partials whose vjp is recorded as one op instead of several: a map over the cotangent and the tensors that
// the partials read. Each derivative of this op then takes one pass over memory. Meant for ops that dominate
// the cost of second derivatives of large tensors.
#pragma once
#include "op/rules.h"
#include "tapedeck/map.h"

namespace tapedeck {
namespace detail {

/// dy times the partial of a single input; x is the input or the output, whichever the partial reads.
template <class F> struct OnePass {
  template <class V> V operator()(const V& dy, const V& x) const {
    return dy * Partial<F, 1>::template of<V>(x, x);
  }
};
/// dy times the partials with respect to both inputs.
template <class A, class B> struct TwoPass {
  template <class V> std::array<V, 2> operator()(const V& dy, const V& a, const V& b) const {
    return {dy * Partial<A, 2>::template of<V>(a, b, dy), dy * Partial<B, 2>::template of<V>(a, b, dy)};
  }
};
/// dy times the sum of both partials, if both inputs are the same tensor.
template <class A, class B> struct TwinPass {
  template <class V> V operator()(const V& dy, const V& x) const {
    return dy * (Partial<A, 2>::template of<V>(x, x, dy) + Partial<B, 2>::template of<V>(x, x, dy));
  }
};

template <class F> Tensor run_pass(const Tensor& dy, const Tensor& x) {
  const Tensor* refs[] = {&dy, &x};
  return kMapOp<"vjp", F, 2>({refs, 2}, Attrs(F()));
}

template <class F> bool recorded_pass(const Call& c, const Tensor& dy, Tensor* dx) {
  dx[0] = run_pass<OnePass<F>>(dy, Partial<F, 1>::read & 1 ? c.x[0] : c.y[0]);
  return true;
}
template <class A, class B> bool recorded_pass(const Call& c, const Tensor& dy, Tensor* dx) {
  if (!c.needs_gradient(0) || !c.needs_gradient(1)) return false;
  if (c.x[0].id() == c.x[1].id()) {
    dx[0] = run_pass<TwinPass<A, B>>(dy, c.x[0]);
  } else {
    const Tensor inputs[] = {dy, c.x[0], c.x[1]};
    std::vector<Tensor> both = kMapOp<"vjp", TwoPass<A, B>, 3>.run(inputs, Attrs(TwoPass<A, B>()));
    for (std::size_t i = 0; i < 2; ++i)
      dx[i] = std::move(both[i]);
  }
  return true;
}

}   // namespace detail

/// Like partials(…), but records the vjp as one op. Accepts one partial that reads the input or the output,
/// or two partials that read both inputs.
template <class... F> constexpr Rule partials_in_a_pass(F... f) {
  constexpr unsigned read = detail::kPartials<F...>.vjp.read;
  static_assert(sizeof...(F) == 1 ? read == 1 || read == 2 : sizeof...(F) == 2 && read == 3);
  Rule rule = partials(f...);
  rule.vjp = [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
    detail::vjp_of_partials(detail::kPartials<F...>, c, std::move(dy[0]), dx, detail::recorded_pass<F...>);
  };
  return rule;
}

}   // namespace tapedeck
