// Special functions that are integrals of elementary ones. In: tensors. Out: a tensor of their shape,
// computed in double.
#include "kernels/special/special.h"
#include "ops/infer.h"
#include "ops/samples.h"
#include "ops/special/of_numbers.h"

namespace tapedeck {
namespace {

using namespace samples;

constexpr double kHalfPi = 1.5707963267948966;

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
     .rule = partials([](auto x, auto y) { return 1 - 2 * x * y; }),
     .samples =
         [] {
           return of_one(
               -2, 2, f64({-1.5, -0.25, 0.5, 8}),
               f64({-0.4282490710853986, -0.23983916356289822, 0.4244363835020223, 0.06300019870755338}),
               "np.vectorize(lambda x: float(mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * "
               "mpmath.erfi(x)))(x)");
         }},

    {.name = "expint",
     .doc = "The exponential integral Ei(x), the principal value of ∫ eᵗ / t dt from -∞ to x.",
     .tensorflow = "Expint",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::expint),
     .rule = partials([](auto x) { return exp(x) / x; }),
     .samples =
         [] {
           return of_one(
               0.5, 4, f64({-1.5, -0.25, 0.5, 2}),
               f64({-0.10001958240663265, -1.0442826344437381, 0.4542199048631736, 4.95423435600189}),
               "np.vectorize(lambda x: float(mpmath.ei(x)))(x)");
         }},

    {.name = "fresnel_sin",
     .doc = "∫₀ˣ sin(πt²/2) dt.",
     .tensorflow = "FresnelSin",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::fresnel_sin),
     .rule = partials([](auto x) { return sin(times(x * x, kHalfPi)); }),
     .samples =
         [] {
           return of_one(
               -2, 2, f64({-1.5, -0.25, 0.5, 8}),
               f64({-0.6975049600820931, -0.008175600235777757, 0.06473243285999927, 0.46021421439301446}),
               "np.vectorize(lambda x: float(mpmath.fresnels(x)))(x)");
         }},

    {.name = "fresnel_cos",
     .doc = "∫₀ˣ cos(πt²/2) dt.",
     .tensorflow = "FresnelCos",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::fresnel_cos),
     .rule = partials([](auto x) { return cos(times(x * x, kHalfPi)); }),
     .samples =
         [] {
           return of_one(
               -2, 2, f64({-1.5, -0.25, 0.5, 8}),
               f64({-0.4452611760398215, -0.2497591503565432, 0.4923442258714464, 0.49980218037719715}),
               "np.vectorize(lambda x: float(mpmath.fresnelc(x)))(x)");
         }},

    {.name = "spence",
     .doc = "Spence's function ∫₁ˣ log(t) / (1 - t) dt = Li₂(1 - x), for x ≥ 0.",
     .tensorflow = "Spence",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::spence),
     .rule = partials(
         [](auto x) { return where(equal(x, 1), 0.5 * x - 1.5, log(x) / (1 - where(equal(x, 1), 2, x))); }),
     .samples =
         [] {
           return of_one(
               1.25, 4, f64({0.125, 0.75, 1.5, 9}),
               f64({1.2381234817964801, 0.2676526390827326, -0.4484142069236462, -3.6856760007574065}),
               "np.vectorize(lambda x: float(mpmath.polylog(2, 1 - x).real))(x)");
         }},
};

}   // namespace

Tensor dawsn(Operand x) { return find(table, "dawsn")(x); }

Tensor expint(Operand x) { return find(table, "expint")(x); }

Tensor fresnel_sin(Operand x) { return find(table, "fresnel_sin")(x); }

Tensor fresnel_cos(Operand x) { return find(table, "fresnel_cos")(x); }

Tensor spence(Operand x) { return find(table, "spence")(x); }

std::span<const Op> integrals_ops() { return table; }

}   // namespace tapedeck
