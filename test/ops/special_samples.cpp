// Samples of the ops in lib/ops/special/special.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "ops/special/special.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples special_table[] = {
    {.op = "erf",
     .samples =
         [] {
           return of_one(
               -2, 2, f64({-1.5, -0.25, 0.5, 2}),
               f64({-0.9661051464753108, -0.27632639016823696, 0.5204998778130465, 0.9953222650189527}),
               "np.vectorize(lambda x: float(mpmath.erf(x)))(x)");
         }},

    {.op = "erfc",
     .samples =
         [] {
           return of_one(
               -2, 2, f64({-1.5, -0.25, 0.5, 8}),
               f64({1.9661051464753108, 1.276326390168237, 0.4795001221869535, 1.1224297172982926e-29}),
               "np.vectorize(lambda x: float(mpmath.erfc(x)))(x)");
         }},

    {.op = "erfinv",
     .samples =
         [] {
           return of_one(
               -0.9, 0.9, f64({-0.75, -0.25, 0.5, 0.875}),
               f64({-0.8134198475976185, -0.2253120550121781, 0.4769362762044699, 1.0847870400692832}),
               "np.vectorize(lambda x: float(mpmath.erfinv(x)))(x)");
         }},

    {.op = "erfcinv",
     .samples =
         [] {
           return of_one(
               0.1, 1.9, f64({0.125, 0.5, 1.25, 1.75}),
               f64({1.0847870400692832, 0.4769362762044699, -0.2253120550121781, -0.8134198475976185}),
               "np.vectorize(lambda x: float(mpmath.erfinv(1 - x)))(x)");
         }},

    {.op = "ndtri",
     .samples =
         [] {
           return of_one(
               0.1, 0.9, f64({0.125, 0.375, 0.625, 0.75}),
               f64({-1.150349380376008, -0.31863936396437514, 0.31863936396437514, 0.6744897501960817}),
               "np.vectorize(lambda x: float(mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1)))(x)");
         }},

    {.op = "lgamma",
     .samples =
         [] {
           return of_one(0.5, 4, f64({-1.5, 0.25, 2.5, 9}),
                         f64({0.860047015376481, 1.2880225246980774, 0.2846828704729192, 10.60460290274525}),
                         "np.vectorize(lambda x: float(mpmath.log(abs(mpmath.gamma(x)))))(x)");
         }},

    {.op = "digamma",
     .samples =
         [] {
           return of_one(0.5, 4, f64({-1.75, 0.25, 2.5, 9}),
                         f64({-2.322691628614361, -4.2274535333762655, 0.7031566406452432, 2.14064147795561}),
                         "np.vectorize(lambda x: float(mpmath.digamma(x)))(x)");
         }},

    {.op = "polygamma",
     .held = 0b01,
     .oracle = "np.vectorize(lambda n, x: float(mpmath.polygamma(int(n), x)))(n, x)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 1, 1), uniform({2, 3}, 0.5, 4, 1)}},
                                      {.inputs = {f64({0, 1, 2, 5}), f64({2.5, 0.25, 3, 1.5})},
                                       .expected = {f64({0.7031566406452432, 17.19732915450711,
                                                         -0.15411380631918858, 11.113548602435497})}}};
         }},

    {.op = "zeta",
     .held = 0b01,
     .oracle = "np.vectorize(lambda s, q: float(mpmath.zeta(s, q)))(s, q)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 1.5, 4), uniform({2, 3}, 0.5, 4, 1)}},
                                      {.inputs = {f64({1.25, 2, 3.5, 10}), f64({2.5, 1, 0.25, 1.5})},
                                       .expected = {f64({3.3531519634628633, 1.6449340668482264,
                                                         128.54695896428436, 0.0174503557579013})}}};
         }},

    {.op = "igamma",
     .oracle = "np.vectorize(lambda a, x: float(mpmath.gammainc(a, 0, x, regularized=True)))(a, x)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0.5, 4), uniform({2, 3}, 0.5, 4, 1)}},
                                      {.inputs = {f64({0.5, 1, 2.5, 9}), f64({0.25, 3, 2, 10})},
                                       .expected = {f64({0.5204998778130465, 0.950212931632136,
                                                         0.4505840486472198, 0.6671803212492811})}}};
         }},

    {.op = "igammac",
     .oracle = "np.vectorize(lambda a, x: float(mpmath.gammainc(a, x, regularized=True)))(a, x)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0.5, 4), uniform({2, 3}, 0.5, 4, 1)}},
                                      {.inputs = {f64({0.5, 1, 2.5, 9}), f64({0.25, 3, 2, 10})},
                                       .expected = {f64({0.4795001221869535, 0.049787068367863944,
                                                         0.5494159513527802, 0.3328196787507189})}}};
         }},

    {.op = "gamma_density",
     .oracle = "np.vectorize(lambda a, x: float(mpmath.exp(-x) * mpmath.mpf(x) ** (a - 1) / "
               "mpmath.gamma(a)))(a, x)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0.5, 4), uniform({3}, 0.5, 4, 1)}},
                                      {.inputs = {f64({0.5, 1, 2.5, 9}), f64({0.25, 3, 2, 10})},
                                       .expected = {f64({0.8787825789354448, 0.049787068367863944,
                                                         0.28795182140366965, 0.11259903214901998})}}};
         }},

    {.op = "igamma_grad_a",
     .samples =
         [] {
           const Tensor a = f64({0.5, 1, 2.5, 9}), x = f64({0.25, 3, 2, 10});
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, 0.5, 4), uniform({3}, 0.5, 4, 1)}, .attrs = Attrs(OrderAttrs{1})},
               {.inputs = {zeros({0, 3}, DType::f64), ones({3}, DType::f64)}, .attrs = Attrs(OrderAttrs{1})},
               {.inputs = {a, x},
                .attrs = Attrs(OrderAttrs{1}),
                .expected = {f64(
                    {-0.797947316783223, -0.09648294199134635, -0.27455132194588155, -0.12085516682777701})},
                .oracle = "np.vectorize(lambda a, x: float(mpmath.diff(lambda t: mpmath.gammainc(t, 0, x, "
                          "regularized=True), a)))(a, x)"},
               {.inputs = {a, x},
                .attrs = Attrs(OrderAttrs{2}),
                .expected = {f64(
                    {0.8096615461928606, -0.10741699767681666, 0.06707717180911078, -0.012726594686409621})},
                .oracle = "np.vectorize(lambda a, x: float(mpmath.diff(lambda t: mpmath.gammainc(t, 0, x, "
                          "regularized=True), a, 2)))(a, x)"}};
         }},

    {.op = "special_derivative",
     .samples =
         [] {
           const Tensor x = f64({0.5, 1.25, 3, 8});
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, 0.5, 2)},
                .attrs = Attrs(DerivativeAttrs{kernels::SpecialFunction::spence, 1})},
               {.inputs = {x},
                .attrs = Attrs(DerivativeAttrs{kernels::SpecialFunction::bessel_i1, 1}),
                .expected = {f64(
                    {0.5476947599595309, 0.826243583049232, 3.5630025133974876, 377.57997362398476})},
                .oracle = "np.vectorize(lambda x: float(mpmath.diff(lambda t: mpmath.besseli(1, t), x)))(x)"},
               {.inputs = {x},
                .attrs = Attrs(DerivativeAttrs{kernels::SpecialFunction::bessel_j1, 2}),
                .expected = {f64(
                    {-0.18106041075750862, -0.3737503553274617, -0.17702853833063945, -0.24876031190692402})},
                .oracle =
                    "np.vectorize(lambda x: float(mpmath.diff(lambda t: mpmath.besselj(1, t), x, 2)))(x)"},
               {.inputs = {x},
                .attrs = Attrs(DerivativeAttrs{kernels::SpecialFunction::bessel_i0e, 1}),
                .expected = {f64({-0.4886144672642784, -0.1934444000517574, -0.046173640864524544,
                                  -0.009289288564152133})},
                .oracle = "np.vectorize(lambda x: float(mpmath.diff(lambda t: mpmath.exp(-t) * "
                          "mpmath.besseli(0, t), x)))(x)"},
               {.inputs = {x},
                .attrs = Attrs(DerivativeAttrs{kernels::SpecialFunction::bessel_i1e, 2}),
                .expected = {f64({-0.3902498372083965, -0.09154948153021729, 0.0016096787034987584,
                                  0.001220026378160809})},
                .oracle = "np.vectorize(lambda x: float(mpmath.diff(lambda t: mpmath.exp(-t) * "
                          "mpmath.besseli(1, t), x, 2)))(x)"},
               {.inputs = {x},
                .attrs = Attrs(DerivativeAttrs{kernels::SpecialFunction::bessel_k0e, 1}),
                .expected = {f64(
                    {-1.2069003224378763, -0.364814103796992, -0.10880188208493513, -0.02652607426890999})},
                .oracle = "np.vectorize(lambda x: float(mpmath.diff(lambda t: mpmath.exp(t) * "
                          "mpmath.besselk(0, t), x)))(x)"},
               {.inputs = {x},
                .attrs = Attrs(DerivativeAttrs{kernels::SpecialFunction::bessel_k1e, 2}),
                .expected = {f64(
                    {16.386058249270715, 1.1114813805086736, 0.09171830568280445, 0.006316161797597228})},
                .oracle = "np.vectorize(lambda x: float(mpmath.diff(lambda t: mpmath.exp(t) * "
                          "mpmath.besselk(1, t), x, 2)))(x)"},
               {.inputs = {x},
                .attrs = Attrs(DerivativeAttrs{kernels::SpecialFunction::dawsn, 2}),
                .expected = {f64(
                    {-1.4244363835020224, -0.392734935651614, 0.06121504075898177, 0.0020504717185605313})},
                .oracle = "np.vectorize(lambda x: float(mpmath.diff(lambda t: mpmath.sqrt(mpmath.pi) / 2 * "
                          "mpmath.exp(-t * t) * mpmath.erfi(t), x, 2)))(x)"},
               {.inputs = {x},
                .attrs = Attrs(DerivativeAttrs{kernels::SpecialFunction::spence, 3}),
                .expected = {f64(
                    {-3.090354888959125, -0.40237456821884876, -0.0524308499448052, -0.004790839893176886})},
                .oracle =
                    "np.vectorize(lambda x: float(mpmath.diff(lambda t: mpmath.log(t) / (1 - t), x, 2)))(x)"},
               {.inputs = {x},
                .attrs = Attrs(DerivativeAttrs{kernels::SpecialFunction::fresnel_sin, 3}),
                .expected = {f64(
                    {1.958219630065813, -12.211625757374753, -88.82643960980423, 3.141592653589793})},
                .oracle = "np.vectorize(lambda x: float(mpmath.diff(lambda t: mpmath.sin(mpmath.pi / 2 * t * "
                          "t), x, 2)))(x)"},
               {.inputs = {x},
                .attrs = Attrs(DerivativeAttrs{kernels::SpecialFunction::fresnel_cos, 1}),
                .expected = {f64({0.9238795325112867, -0.773010453362737, 0, 1.0})},
                .oracle = "np.vectorize(lambda x: float(mpmath.cos(mpmath.pi / 2 * x * x)))(x)",
                .floor = 1e-18}};
         }},

    {.op = "betainc",
     .held = 0b011,
     .oracle = "np.vectorize(lambda a, b, x: float(mpmath.betainc(a, b, 0, x, regularized=True)))(a, b, x)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, 0.5, 4), uniform({2, 3}, 0.5, 4, 1),
                           uniform({2, 3}, 0.1, 0.9, 2)}},
               {.inputs = {f64({0.5, 1, 2.5, 9}), f64({0.75, 3, 2, 10}), f64({0.25, 0.5, 0.75, 0.375})},
                .expected = {f64({0.42695260991120054, 0.875, 0.7916013456467135, 0.19575992810873155})}}};
         }},
};

}   // namespace

std::span<const OpSamples> special_samples() { return special_table; }

}   // namespace tapedeck::test
