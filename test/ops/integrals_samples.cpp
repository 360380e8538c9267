// Samples of the ops in lib/ops/special/integrals.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples integrals_table[] = {
    {.op = "dawsn",
     .samples =
         [] {
           return of_one(
               -2, 2, f64({-1.5, -0.25, 0.5, 8}),
               f64({-0.4282490710853986, -0.23983916356289822, 0.4244363835020223, 0.06300019870755338}),
               "np.vectorize(lambda x: float(mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * "
               "mpmath.erfi(x)))(x)");
         }},

    {.op = "expint",
     .samples =
         [] {
           return of_one(
               0.5, 4, f64({-1.5, -0.25, 0.5, 2}),
               f64({-0.10001958240663265, -1.0442826344437381, 0.4542199048631736, 4.95423435600189}),
               "np.vectorize(lambda x: float(mpmath.ei(x)))(x)");
         }},

    {.op = "fresnel_sin",
     .samples =
         [] {
           return of_one(
               -2, 2, f64({-1.5, -0.25, 0.5, 8}),
               f64({-0.6975049600820931, -0.008175600235777757, 0.06473243285999927, 0.46021421439301446}),
               "np.vectorize(lambda x: float(mpmath.fresnels(x)))(x)");
         }},

    {.op = "fresnel_cos",
     .samples =
         [] {
           return of_one(
               -2, 2, f64({-1.5, -0.25, 0.5, 8}),
               f64({-0.4452611760398215, -0.2497591503565432, 0.4923442258714464, 0.49980218037719715}),
               "np.vectorize(lambda x: float(mpmath.fresnelc(x)))(x)");
         }},

    {.op = "spence",
     .samples =
         [] {
           return of_one(
               1.25, 4, f64({0.125, 0.75, 1.5, 9}),
               f64({1.2381234817964801, 0.2676526390827326, -0.4484142069236462, -3.6856760007574065}),
               "np.vectorize(lambda x: float(mpmath.polylog(2, 1 - x).real))(x)");
         }},
};

}   // namespace

std::span<const OpSamples> integrals_samples() { return integrals_table; }

}   // namespace tapedeck::test
