// The attributes of derivatives of special functions, and the op for derivatives without a formula in ops.
#pragma once
#include "kernels/special/derivative.h"
#include "op/elementwise.h"
#include "op/rules.h"

namespace tapedeck {

struct OrderAttrs {
  int order;
};

struct DerivativeAttrs {
  kernels::SpecialFunction f;
  int order;
};

Tensor special_derivative(kernels::SpecialFunction f, int order, const Tensor& x);

/// The first derivative of f, for use as a partial.
template <kernels::SpecialFunction f> struct DerivativeOf {
  Tensor operator()(const Tensor& x) const { return special_derivative(f, 1, x); }
  template <unsigned A> constexpr Probe<A> operator()(Probe<A>) const { return {}; }
  template <class T, class A> xsimd::batch<T, A> operator()(const xsimd::batch<T, A>& x) const {
    return detail::by_element([](double v) { return kernels::derivative(f, 1, v, detail::kSingle<T>); }, x);
  }
};
template <kernels::SpecialFunction f> inline constexpr DerivativeOf<f> kDerivativeOf;

}   // namespace tapedeck
