// Samples of the ops in lib/ops/special/bessel.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples bessel_table[] = {
    {.op = "bessel_i0",
     .samples =
         [] {
           return of_one(-2, 2, f64({-1.5, -0.25, 0.5, 2}),
                         f64({1.646723189772891, 1.015686141223608, 1.0634833707413236, 2.2795853023360673}),
                         "np.vectorize(lambda x: float(mpmath.besseli(0, x)))(x)");
         }},

    {.op = "bessel_i0e",
     .samples =
         [] {
           return of_one(
               0.25, 2, f64({-1.5, -0.25, 0.5, 2}),
               f64({0.36743360905415834, 0.7910171621397194, 0.6450352704491501, 0.30850832255367105}),
               "np.vectorize(lambda x: float(mpmath.exp(-abs(x)) * mpmath.besseli(0, x)))(x)");
         }},

    {.op = "bessel_i1",
     .samples =
         [] {
           return of_one(
               -2, 2, f64({-1.5, -0.25, 0.5, 2}),
               f64({-0.9816664285779075, -0.12597910894546793, 0.2578943053908963, 1.590636854637329}),
               "np.vectorize(lambda x: float(mpmath.besseli(1, x)))(x)");
         }},

    {.op = "bessel_i1e",
     .samples =
         [] {
           return of_one(
               0.25, 2, f64({-1.5, -0.25, 0.5, 2}),
               f64({-0.21903938742092569, -0.09811262869736824, 0.1564208031848717, 0.21526928924893765}),
               "np.vectorize(lambda x: float(mpmath.exp(-abs(x)) * mpmath.besseli(1, x)))(x)");
         }},

    {.op = "bessel_j0",
     .samples =
         [] {
           return of_one(
               -2, 2, f64({-1.5, -0.25, 0.5, 2}),
               f64({0.5118276717359181, 0.9844359292958527, 0.9384698072408129, 0.22389077914123567}),
               "np.vectorize(lambda x: float(mpmath.besselj(0, x)))(x)");
         }},

    {.op = "bessel_j1",
     .samples =
         [] {
           return of_one(
               -2, 2, f64({-1.5, -0.25, 0.5, 2}),
               f64({-0.5579365079100996, -0.12402597732272692, 0.2422684576748739, 0.5767248077568734}),
               "np.vectorize(lambda x: float(mpmath.besselj(1, x)))(x)");
         }},

    {.op = "bessel_k0",
     .samples =
         [] {
           return of_one(
               0.5, 4, f64({0.25, 1, 2.5, 9}),
               f64({1.5415067512483027, 0.42102443824070834, 0.06234755320036619, 5.0881312956459246e-05}),
               "np.vectorize(lambda x: float(mpmath.besselk(0, x)))(x)");
         }},

    {.op = "bessel_k0e",
     .samples =
         [] {
           return of_one(0.5, 4, f64({0.25, 1, 2.5, 9}),
                         f64({1.9793338485985688, 1.144463079806895, 0.7595486903280996, 0.4122955492314181}),
                         "np.vectorize(lambda x: float(mpmath.exp(x) * mpmath.besselk(0, x)))(x)");
         }},

    {.op = "bessel_k1",
     .samples =
         [] {
           return of_one(
               0.5, 4, f64({0.25, 1, 2.5, 9}),
               f64({3.7470259744407115, 0.6019072301972346, 0.07389081634774707, 5.363701637945195e-05}),
               "np.vectorize(lambda x: float(mpmath.besselk(1, x)))(x)");
         }},

    {.op = "bessel_k1e",
     .samples =
         [] {
           return of_one(0.5, 4, f64({0.25, 1, 2.5, 9}),
                         f64({4.811276588171025, 1.6361534862632583, 0.900174423907878, 0.4346252453474347}),
                         "np.vectorize(lambda x: float(mpmath.exp(x) * mpmath.besselk(1, x)))(x)");
         }},

    {.op = "bessel_y0",
     .samples =
         [] {
           return of_one(
               0.5, 4, f64({0.25, 1, 2.5, 9}),
               f64({-0.9315730249300587, 0.08825696421567696, 0.4980703596152319, 0.24993669828502468}),
               "np.vectorize(lambda x: float(mpmath.bessely(0, x)))(x)");
         }},

    {.op = "bessel_y1",
     .samples =
         [] {
           return of_one(
               0.5, 4, f64({0.25, 1, 2.5, 9}),
               f64({-2.7041052293152825, -0.7812128213002887, 0.1459181379667858, 0.10431457519671589}),
               "np.vectorize(lambda x: float(mpmath.bessely(1, x)))(x)");
         }},
};

}   // namespace

std::span<const OpSamples> bessel_samples() { return bessel_table; }

}   // namespace tapedeck::test
