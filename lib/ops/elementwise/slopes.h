// Overloads of the functions in tapedeck/simd/slopes.h for the other argument types of partials: for Tensors,
// which run ops, and for Probes.
#pragma once
#include "op/probe.h"
#include "tapedeck/simd/slopes.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

Tensor logistic(const Tensor& x);
Tensor logistic_slope(const Tensor& x);
Tensor gaussian(const Tensor& x, double c);
Tensor one_minus_square(const Tensor& x);
Tensor log_ratio(const Tensor& a, const Tensor& b);
Tensor asin_slope(const Tensor& x);
Tensor acosh_slope(const Tensor& x);
Tensor atan_slope(const Tensor& x);
Tensor asinh_slope(const Tensor& x);
Tensor length_of(const Tensor& a, const Tensor& b);
Tensor over_hypot(const Tensor& a, const Tensor& b, const Tensor& y);

template <unsigned A> constexpr Probe<A> logistic(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> logistic_slope(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> one_minus_square(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> asin_slope(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> acosh_slope(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> atan_slope(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> asinh_slope(Probe<A>) { return {}; }
template <unsigned A> constexpr Probe<A> gaussian(Probe<A>, double) { return {}; }
template <unsigned A, unsigned B> constexpr Probe<A | B> log_ratio(Probe<A>, Probe<B>) { return {}; }
template <unsigned A, unsigned B> constexpr Probe<A | B> length_of(Probe<A>, Probe<B>) { return {}; }
template <unsigned A, unsigned B> constexpr Probe<A | B> hypot(Probe<A>, Probe<B>) { return {}; }
template <unsigned A, unsigned B, unsigned Y>
constexpr Probe<A | B | Y> over_hypot(Probe<A>, Probe<B>, Probe<Y>) {
  return {};
}

}   // namespace tapedeck
