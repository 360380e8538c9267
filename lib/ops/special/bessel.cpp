// Bessel functions of elements. In: tensors. Out: a tensor of their shape, computed in double.
#include "kernels/special/special.h"
#include "ops/infer.h"
#include "ops/samples.h"
#include "ops/special/of_numbers.h"

namespace tapedeck {
namespace {

using namespace samples;

/// exp(-|x|) f(x), with the exponential of vectors; where f may overflow by `scaled`.
template <double (*f)(double), double (*scaled)(double)> struct Scaled {
  template <class V> V operator()(const V& x) const {
    return detail::in_double(
        [](const auto& v) {
          using B = std::decay_t<decltype(v)>;
          const B r = xsimd::abs(v), bound(700.0),
                  y = detail::by_element(f, xsimd::max(-bound, xsimd::min(bound, v))) *
                      exp(-r);   // nan stays: it is second
          const auto moderate = r <= bound;
          return xsimd::all(moderate) ? y : xsimd::select(moderate, y, detail::by_element(scaled, v));
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

constexpr Op table[] = {
    {.name = "bessel_i0",
     .doc = "The modified Bessel function I₀(x).",
     .tensorflow = "BesselI0",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::bessel_i0),
     .rule = partials([](auto x) { return fn::bessel_i1(x); }),
     .samples =
         [] {
           return of_one(-2, 2, f64({-1.5, -0.25, 0.5, 2}),
                         f64({1.646723189772891, 1.015686141223608, 1.0634833707413236, 2.2795853023360673}),
                         "np.vectorize(lambda x: float(mpmath.besseli(0, x)))(x)");
         }},

    {.name = "bessel_i0e",
     .doc = "exp(-|x|) I₀(x).",
     .tensorflow = "BesselI0e",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::bessel_i0e),
     .rule = partials([](auto x, auto y) { return fn::bessel_i1e(x) - sign(x) * y; }),
     .samples =
         [] {
           return of_one(
               0.25, 2, f64({-1.5, -0.25, 0.5, 2}),
               f64({0.36743360905415834, 0.7910171621397194, 0.6450352704491501, 0.30850832255367105}),
               "np.vectorize(lambda x: float(mpmath.exp(-abs(x)) * mpmath.besseli(0, x)))(x)");
         }},

    {.name = "bessel_i1",
     .doc = "The modified Bessel function I₁(x), with I₁' = I₀ - I₁/x (DLMF 10.29.2).",
     .tensorflow = "BesselI1",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::bessel_i1),
     .rule = partials([](auto x, auto y) {
       return where(equal(x, 0), 0.5, fn::bessel_i0(x) - y / where(equal(x, 0), 1, x));
     }),
     .samples =
         [] {
           return of_one(
               -2, 2, f64({-1.5, -0.25, 0.5, 2}),
               f64({-0.9816664285779075, -0.12597910894546793, 0.2578943053908963, 1.590636854637329}),
               "np.vectorize(lambda x: float(mpmath.besseli(1, x)))(x)");
         }},

    {.name = "bessel_i1e",
     .doc = "exp(-|x|) I₁(x).",
     .tensorflow = "BesselI1e",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::bessel_i1e),
     .rule = partials([](auto x, auto y) {
       return where(equal(x, 0), 0.5, fn::bessel_i0e(x) - y * (sign(x) + 1 / where(equal(x, 0), 1, x)));
     }),
     .samples =
         [] {
           return of_one(
               0.25, 2, f64({-1.5, -0.25, 0.5, 2}),
               f64({-0.21903938742092569, -0.09811262869736824, 0.1564208031848717, 0.21526928924893765}),
               "np.vectorize(lambda x: float(mpmath.exp(-abs(x)) * mpmath.besseli(1, x)))(x)");
         }},

    {.name = "bessel_j0",
     .doc = "The Bessel function J₀(x).",
     .tensorflow = "BesselJ0",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::bessel_j0),
     .rule = partials([](auto x) { return -fn::bessel_j1(x); }),
     .samples =
         [] {
           return of_one(
               -2, 2, f64({-1.5, -0.25, 0.5, 2}),
               f64({0.5118276717359181, 0.9844359292958527, 0.9384698072408129, 0.22389077914123567}),
               "np.vectorize(lambda x: float(mpmath.besselj(0, x)))(x)");
         }},

    {.name = "bessel_j1",
     .doc = "The Bessel function J₁(x), with J₁' = J₀ - J₁/x (DLMF 10.6.2).",
     .tensorflow = "BesselJ1",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::bessel_j1),
     .rule = partials([](auto x, auto y) {
       return where(equal(x, 0), 0.5, fn::bessel_j0(x) - y / where(equal(x, 0), 1, x));
     }),
     .samples =
         [] {
           return of_one(
               -2, 2, f64({-1.5, -0.25, 0.5, 2}),
               f64({-0.5579365079100996, -0.12402597732272692, 0.2422684576748739, 0.5767248077568734}),
               "np.vectorize(lambda x: float(mpmath.besselj(1, x)))(x)");
         }},

    {.name = "bessel_k0",
     .doc = "The modified Bessel function K₀(x), for x ≥ 0.",
     .tensorflow = "BesselK0",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::bessel_k0),
     .rule = partials([](auto x) { return -fn::bessel_k1(x); }),
     .samples =
         [] {
           return of_one(
               0.5, 4, f64({0.25, 1, 2.5, 9}),
               f64({1.5415067512483027, 0.42102443824070834, 0.06234755320036619, 5.0881312956459246e-05}),
               "np.vectorize(lambda x: float(mpmath.besselk(0, x)))(x)");
         }},

    {.name = "bessel_k0e",
     .doc = "eˣ K₀(x).",
     .tensorflow = "BesselK0e",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::bessel_k0e),
     .rule = partials([](auto x, auto y) { return y - fn::bessel_k1e(x); }),
     .samples =
         [] {
           return of_one(0.5, 4, f64({0.25, 1, 2.5, 9}),
                         f64({1.9793338485985688, 1.144463079806895, 0.7595486903280996, 0.4122955492314181}),
                         "np.vectorize(lambda x: float(mpmath.exp(x) * mpmath.besselk(0, x)))(x)");
         }},

    {.name = "bessel_k1",
     .doc = "The modified Bessel function K₁(x), for x ≥ 0, with K₁' = -K₀ - K₁/x (DLMF 10.29.2).",
     .tensorflow = "BesselK1",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::bessel_k1),
     .rule = partials([](auto x, auto y) { return -fn::bessel_k0(x) - y / x; }),
     .samples =
         [] {
           return of_one(
               0.5, 4, f64({0.25, 1, 2.5, 9}),
               f64({3.7470259744407115, 0.6019072301972346, 0.07389081634774707, 5.363701637945195e-05}),
               "np.vectorize(lambda x: float(mpmath.besselk(1, x)))(x)");
         }},

    {.name = "bessel_k1e",
     .doc = "eˣ K₁(x).",
     .tensorflow = "BesselK1e",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::bessel_k1e),
     .rule = partials([](auto x, auto y) { return y * (1 - 1 / x) - fn::bessel_k0e(x); }),
     .samples =
         [] {
           return of_one(0.5, 4, f64({0.25, 1, 2.5, 9}),
                         f64({4.811276588171025, 1.6361534862632583, 0.900174423907878, 0.4346252453474347}),
                         "np.vectorize(lambda x: float(mpmath.exp(x) * mpmath.besselk(1, x)))(x)");
         }},

    {.name = "bessel_y0",
     .doc = "The Bessel function Y₀(x), for x ≥ 0.",
     .tensorflow = "BesselY0",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::bessel_y0),
     .rule = partials([](auto x) { return -fn::bessel_y1(x); }),
     .samples =
         [] {
           return of_one(
               0.5, 4, f64({0.25, 1, 2.5, 9}),
               f64({-0.9315730249300587, 0.08825696421567696, 0.4980703596152319, 0.24993669828502468}),
               "np.vectorize(lambda x: float(mpmath.bessely(0, x)))(x)");
         }},

    {.name = "bessel_y1",
     .doc = "The Bessel function Y₁(x), for x ≥ 0, with Y₁' = Y₀ - Y₁/x (DLMF 10.6.2).",
     .tensorflow = "BesselY1",
     .args = {"x"},
     .infer = elementwise,
     .forward = map(fn::bessel_y1),
     .rule = partials([](auto x, auto y) { return fn::bessel_y0(x) - y / x; }),
     .samples =
         [] {
           return of_one(
               0.5, 4, f64({0.25, 1, 2.5, 9}),
               f64({-2.7041052293152825, -0.7812128213002887, 0.1459181379667858, 0.10431457519671589}),
               "np.vectorize(lambda x: float(mpmath.bessely(1, x)))(x)");
         }},
};

}   // namespace

Tensor bessel_i0(Operand x) { return find(table, "bessel_i0")(x); }
Tensor bessel_i0e(Operand x) { return find(table, "bessel_i0e")(x); }
Tensor bessel_i1(Operand x) { return find(table, "bessel_i1")(x); }
Tensor bessel_i1e(Operand x) { return find(table, "bessel_i1e")(x); }
Tensor bessel_j0(Operand x) { return find(table, "bessel_j0")(x); }
Tensor bessel_j1(Operand x) { return find(table, "bessel_j1")(x); }
Tensor bessel_k0(Operand x) { return find(table, "bessel_k0")(x); }
Tensor bessel_k0e(Operand x) { return find(table, "bessel_k0e")(x); }
Tensor bessel_k1(Operand x) { return find(table, "bessel_k1")(x); }
Tensor bessel_k1e(Operand x) { return find(table, "bessel_k1e")(x); }
Tensor bessel_y0(Operand x) { return find(table, "bessel_y0")(x); }
Tensor bessel_y1(Operand x) { return find(table, "bessel_y1")(x); }

std::span<const Op> bessel_ops() { return table; }

}   // namespace tapedeck
