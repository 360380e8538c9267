// Elementwise integrals of elementary functions. In: a tensor. Out: a tensor of its shape, computed in
// double.
#include "tapedeck/ops/integrals.h"

#include <limits>

#include "kernels/special/special.h"
#include "ops/infer.h"
#include "ops/special/scalar_functions.h"
#include "ops/special/special.h"
#include "tapedeck/simd/slopes.h"

namespace tapedeck {
namespace {

using kernels::SpecialFunction;

namespace fn {

constexpr OfNumbers<kernels::dawsn, tapedeck::dawsn> dawsn;
constexpr OfNumbers<kernels::expint, tapedeck::expint> expint;
constexpr OfNumbers<kernels::fresnel_sin, tapedeck::fresnel_sin> fresnel_sin;
constexpr OfNumbers<kernels::fresnel_cos, tapedeck::fresnel_cos> fresnel_cos;
constexpr OfNumbers<kernels::spence, tapedeck::spence> spence;

}   // namespace fn

/// πx²/2 modulo 2π, with x² in two parts, each reduced modulo 4; 0 where |x| is so large that x is even.
template <class B> B fresnel_angle(const B& any) {
  using T = typename B::value_type;
  const B x = where(abs(any) > B(T(1e17)), any - any, any);
  const auto reduced = [](const B& v) { return v - T(4) * nearbyint(v * T(0.25)); };
  const B square = x * x;
  return times(reduced(square) + reduced(detail::rest_of_square(x, square)), 1.5707963267948966);
}

/// Derivatives whose formulas are accurate on vectors. On Tensors they are an op, which has derivatives of
/// higher orders.
template <SpecialFunction f> struct SlopeOf {
  Tensor operator()(const Tensor& x) const { return special_derivative(f, 1, x); }
  template <unsigned A> constexpr Probe<A> operator()(Probe<A>) const { return {}; }
  template <class T, class A> xsimd::batch<T, A> operator()(const xsimd::batch<T, A>& x) const {
    if constexpr (f == SpecialFunction::fresnel_sin)
      return sin(fresnel_angle(x));
    else if constexpr (f == SpecialFunction::fresnel_cos)
      return cos(fresnel_angle(x));
    else
      return where(equal(x, 1), T(-1),
                   where(equal(x, std::numeric_limits<T>::infinity()), T(0),
                         log(x) / (1 - where(equal(x, 1), T(2), x))));
  }
};

constexpr Op kDawsn = {
    .name = "dawsn",
    .doc = "Dawson's integral F(x) = exp(-x²) ∫₀ˣ exp(t²) dt, with F' = 1 - 2xF (DLMF 7.2.5).",
    .tensorflow = "Dawsn",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::dawsn),
    .rule = partials(kDerivativeOf<SpecialFunction::dawsn>),
};

constexpr Op kExpint = {
    .name = "expint",
    .doc = "The exponential integral Ei(x), the principal value of ∫ eᵗ / t dt from -∞ to x.",
    .tensorflow = "Expint",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::expint),
    // The derivative is infinite above 1e30; the limit avoids ∞ / ∞.
    .rule = partials([](auto x) { return exp(x) / minimum(x, 1e30f); }),
};

constexpr Op kFresnelSin = {
    .name = "fresnel_sin",
    .doc = "∫₀ˣ sin(πt²/2) dt.",
    .tensorflow = "FresnelSin",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::fresnel_sin),
    .rule = partials(SlopeOf<SpecialFunction::fresnel_sin>()),
};

constexpr Op kFresnelCos = {
    .name = "fresnel_cos",
    .doc = "∫₀ˣ cos(πt²/2) dt.",
    .tensorflow = "FresnelCos",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::fresnel_cos),
    .rule = partials(SlopeOf<SpecialFunction::fresnel_cos>()),
};

constexpr Op kSpence = {
    .name = "spence",
    .doc = "Spence's function ∫₁ˣ log(t) / (1 - t) dt = Li₂(1 - x), for x ≥ 0.",
    .tensorflow = "Spence",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::spence),
    .rule = partials(SlopeOf<SpecialFunction::spence>()),
};

constexpr const Op* integrals_table[] = {&kDawsn, &kExpint, &kFresnelSin, &kFresnelCos, &kSpence};

}   // namespace

Tensor dawsn(Operand x) { return kDawsn(x); }

Tensor expint(Operand x) { return kExpint(x); }

Tensor fresnel_sin(Operand x) { return kFresnelSin(x); }

Tensor fresnel_cos(Operand x) { return kFresnelCos(x); }

Tensor spence(Operand x) { return kSpence(x); }

std::span<const Op* const> integrals_ops() { return integrals_table; }

}   // namespace tapedeck
