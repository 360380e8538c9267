// Elementwise Bessel functions. In: a tensor. Out: a tensor of its shape, computed in double.
#include "tapedeck/ops/bessel.h"

#include "kernels/special/special.h"
#include "ops/infer.h"
#include "ops/special/scalar_functions.h"
#include "ops/special/special.h"

namespace tapedeck {
namespace {

/// exp(-|x|) f(x), with a vectorized exponential; computed by `scaled` where f may overflow.
template <double (*f)(double), double (*scaled)(double)> struct Scaled {
  template <class V> V operator()(const V& x) const {
    return detail::in_double(
        [](const auto& v) {
          using B = std::decay_t<decltype(v)>;
          const B r = xsimd::abs(v), bound(700.0),
                  y = detail::by_element(f, xsimd::max(-bound, xsimd::min(bound, v))) *
                      exp(-r);   // NaN is kept, as the second operand
          const auto moderate = r <= bound;
          return detail::rarely(!moderate, y,
                                [&] { return xsimd::select(moderate, y, detail::by_element(scaled, v)); });
        },
        x);
  }
};

namespace fn {

constexpr OfNumbers<kernels::bessel_i0, tapedeck::bessel_i0> bessel_i0;
constexpr OfNumbers<Scaled<kernels::bessel_i0, kernels::bessel_i0e>{}, tapedeck::bessel_i0e> bessel_i0e;
constexpr OfNumbers<kernels::bessel_i1, tapedeck::bessel_i1> bessel_i1;
constexpr OfNumbers<Scaled<kernels::bessel_i1, kernels::bessel_i1e>{}, tapedeck::bessel_i1e> bessel_i1e;
constexpr OfNumbers<kernels::bessel_j0, tapedeck::bessel_j0> bessel_j0;
constexpr OfNumbers<kernels::bessel_j1, tapedeck::bessel_j1> bessel_j1;
constexpr OfNumbers<kernels::bessel_k0, tapedeck::bessel_k0> bessel_k0;
constexpr OfNumbers<kernels::bessel_k0e, tapedeck::bessel_k0e> bessel_k0e;
constexpr OfNumbers<kernels::bessel_k1, tapedeck::bessel_k1> bessel_k1;
constexpr OfNumbers<kernels::bessel_k1e, tapedeck::bessel_k1e> bessel_k1e;
constexpr OfNumbers<kernels::bessel_y0, tapedeck::bessel_y0> bessel_y0;
constexpr OfNumbers<kernels::bessel_y1, tapedeck::bessel_y1> bessel_y1;

}   // namespace fn

using kernels::SpecialFunction;

/// The derivative of a function of order 1, C₀ - C₁/x. On Tensors it is an op, since a derivative of this
/// formula would suffer cancellation near 0.
template <SpecialFunction f, const auto& of_order_zero> struct OfOrderOne {
  Tensor operator()(const Tensor& x, const Tensor&) const { return special_derivative(f, 1, x); }
  template <unsigned A, unsigned B> constexpr Probe<A | B> operator()(Probe<A>, Probe<B>) const { return {}; }
  template <class T, class A>
  xsimd::batch<T, A> operator()(const xsimd::batch<T, A>& x, const xsimd::batch<T, A>& y) const {
    const auto zero = of_order_zero(x);
    const auto small = abs(x) < xsimd::batch<T, A>(T(1e-10));   // where y may be too small for a quotient
    const auto slope = where(small, T(0.5), zero - y / where(small, T(1), x));
    return where(xsimd::isinf(zero), zero, slope);
  }
};

constexpr Op kBesselI0 = {
    .name = "bessel_i0",
    .doc = "The modified Bessel function I₀(x).",
    .tensorflow = "BesselI0",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::bessel_i0),
    .rule = partials([](auto x) { return fn::bessel_i1(x); }),
};

constexpr Op kBesselI0e = {
    .name = "bessel_i0e",
    .doc = "exp(-|x|) I₀(x).",
    .tensorflow = "BesselI0e",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::bessel_i0e),
    .rule = partials(kDerivativeOf<SpecialFunction::bessel_i0e>),
};

constexpr Op kBesselI1 = {
    .name = "bessel_i1",
    .doc = "The modified Bessel function I₁(x), with I₁' = I₀ - I₁/x (DLMF 10.29.2).",
    .tensorflow = "BesselI1",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::bessel_i1),
    .rule = partials(OfOrderOne<SpecialFunction::bessel_i1, fn::bessel_i0>()),
};

constexpr Op kBesselI1e = {
    .name = "bessel_i1e",
    .doc = "exp(-|x|) I₁(x).",
    .tensorflow = "BesselI1e",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::bessel_i1e),
    .rule = partials(kDerivativeOf<SpecialFunction::bessel_i1e>),
};

constexpr Op kBesselJ0 = {
    .name = "bessel_j0",
    .doc = "The Bessel function J₀(x).",
    .tensorflow = "BesselJ0",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::bessel_j0),
    .rule = partials([](auto x) { return -fn::bessel_j1(x); }),
};

constexpr Op kBesselJ1 = {
    .name = "bessel_j1",
    .doc = "The Bessel function J₁(x), with J₁' = J₀ - J₁/x (DLMF 10.6.2).",
    .tensorflow = "BesselJ1",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::bessel_j1),
    .rule = partials(OfOrderOne<SpecialFunction::bessel_j1, fn::bessel_j0>()),
};

constexpr Op kBesselK0 = {
    .name = "bessel_k0",
    .doc = "The modified Bessel function K₀(x), for x ≥ 0.",
    .tensorflow = "BesselK0",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::bessel_k0),
    .rule = partials([](auto x) { return -fn::bessel_k1(x); }),
};

constexpr Op kBesselK0e = {
    .name = "bessel_k0e",
    .doc = "eˣ K₀(x).",
    .tensorflow = "BesselK0e",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::bessel_k0e),
    .rule = partials(kDerivativeOf<SpecialFunction::bessel_k0e>),
};

// The derivatives of K₁ and Y₁ are infinite at 0 and -0: the divisor is |x|, which is +0, and Y₀, which
// exceeds -1000 elsewhere, is clamped to stay finite.
constexpr Op kBesselK1 = {
    .name = "bessel_k1",
    .doc = "The modified Bessel function K₁(x), for x ≥ 0, with K₁' = -K₀ - K₁/x (DLMF 10.29.2).",
    .tensorflow = "BesselK1",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::bessel_k1),
    .rule = partials([](auto x, auto y) { return -fn::bessel_k0(x) - y / abs(x); }),
};

constexpr Op kBesselK1e = {
    .name = "bessel_k1e",
    .doc = "eˣ K₁(x).",
    .tensorflow = "BesselK1e",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::bessel_k1e),
    .rule = partials(kDerivativeOf<SpecialFunction::bessel_k1e>),
};

constexpr Op kBesselY0 = {
    .name = "bessel_y0",
    .doc = "The Bessel function Y₀(x), for x ≥ 0.",
    .tensorflow = "BesselY0",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::bessel_y0),
    .rule = partials([](auto x) { return -fn::bessel_y1(x); }),
};

constexpr Op kBesselY1 = {
    .name = "bessel_y1",
    .doc = "The Bessel function Y₁(x), for x ≥ 0, with Y₁' = Y₀ - Y₁/x (DLMF 10.6.2).",
    .tensorflow = "BesselY1",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::bessel_y1),
    .rule = partials([](auto x, auto y) { return maximum(fn::bessel_y0(x), -1000) - y / abs(x); }),
};

constexpr const Op* bessel_table[] = {&kBesselI0, &kBesselI0e, &kBesselI1, &kBesselI1e,
                                      &kBesselJ0, &kBesselJ1,  &kBesselK0, &kBesselK0e,
                                      &kBesselK1, &kBesselK1e, &kBesselY0, &kBesselY1};

}   // namespace

Tensor bessel_i0(Operand x) { return kBesselI0(x); }
Tensor bessel_i0e(Operand x) { return kBesselI0e(x); }
Tensor bessel_i1(Operand x) { return kBesselI1(x); }
Tensor bessel_i1e(Operand x) { return kBesselI1e(x); }
Tensor bessel_j0(Operand x) { return kBesselJ0(x); }
Tensor bessel_j1(Operand x) { return kBesselJ1(x); }
Tensor bessel_k0(Operand x) { return kBesselK0(x); }
Tensor bessel_k0e(Operand x) { return kBesselK0e(x); }
Tensor bessel_k1(Operand x) { return kBesselK1(x); }
Tensor bessel_k1e(Operand x) { return kBesselK1e(x); }
Tensor bessel_y0(Operand x) { return kBesselY0(x); }
Tensor bessel_y1(Operand x) { return kBesselY1(x); }

std::span<const Op* const> bessel_ops() { return bessel_table; }

}   // namespace tapedeck
