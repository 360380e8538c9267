// Special functions that are integrals of elementary ones. In: tensors. Out: a tensor of their shape,
// computed in double.
#include "tapedeck/ops/integrals.h"
#include "kernels/special/special.h"
#include "ops/infer.h"
#include "ops/special/of_numbers.h"
#include "ops/special/special.h"

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

constexpr Op table[] = {
    {.name = "dawsn",
     .doc = "Dawson's integral F(x) = exp(-x²) ∫₀ˣ exp(t²) dt, with F' = 1 - 2xF (DLMF 7.2.5).",
     .tensorflow = "Dawsn",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::dawsn),
     .rule = partials(kDerivativeOf<SpecialFunction::dawsn>)},

    {.name = "expint",
     .doc = "The exponential integral Ei(x), the principal value of ∫ eᵗ / t dt from -∞ to x.",
     .tensorflow = "Expint",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::expint),
     .rule = partials([](auto x) { return exp(x) / x; })},

    {.name = "fresnel_sin",
     .doc = "∫₀ˣ sin(πt²/2) dt.",
     .tensorflow = "FresnelSin",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::fresnel_sin),
     .rule = partials(kDerivativeOf<SpecialFunction::fresnel_sin>)},

    {.name = "fresnel_cos",
     .doc = "∫₀ˣ cos(πt²/2) dt.",
     .tensorflow = "FresnelCos",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::fresnel_cos),
     .rule = partials(kDerivativeOf<SpecialFunction::fresnel_cos>)},

    {.name = "spence",
     .doc = "Spence's function ∫₁ˣ log(t) / (1 - t) dt = Li₂(1 - x), for x ≥ 0.",
     .tensorflow = "Spence",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::spence),
     .rule = partials(kDerivativeOf<SpecialFunction::spence>)},
};

}   // namespace

Tensor dawsn(Operand x) { return find(table, "dawsn")(x); }

Tensor expint(Operand x) { return find(table, "expint")(x); }

Tensor fresnel_sin(Operand x) { return find(table, "fresnel_sin")(x); }

Tensor fresnel_cos(Operand x) { return find(table, "fresnel_cos")(x); }

Tensor spence(Operand x) { return find(table, "spence")(x); }

std::span<const Op> integrals_ops() { return table; }

}   // namespace tapedeck
