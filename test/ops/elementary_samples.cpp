// Samples of the ops in lib/ops/elementwise/elementary.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

/// Values of the functions that are defined between -1 and 1, or above 1.
Tensor inner() { return f64({-0.75, -0.25, 0.5, 0.875}); }
Tensor above() { return f64({1.25, 1.5, 3, 10}); }

constexpr OpSamples elementary_table[] = {
    {.op = "sqrt",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(0.5, 4, positive(), f64({0.5, 1.0, 1.5811388300841898, 3.0}), "np.sqrt(x)");
         }},

    {.op = "rsqrt",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(0.5, 4, positive(), f64({2.0, 1.0, 0.6324555320336759, 0.3333333333333333}),
                         "1 / np.sqrt(x)");
         }},

    {.op = "cbrt",
     .samples =
         [] {
           return of_one(
               0.5, 4, signs(),
               f64({-1.1447142425533319, -0.6299605249474366, 0.7937005259840998, 1.2599210498948732}),
               "np.cbrt(x)");
         }},

    {.op = "exp",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(-2, 2, signs(),
                         f64({0.22313016014842982, 0.7788007830714049, 1.6487212707001282, 7.38905609893065}),
                         "np.exp(x)");
         }},

    {.op = "exp2",
     .samples =
         [] {
           return of_one(-2, 2, signs(), f64({0.3535533905932738, 0.8408964152537145, 1.4142135623730951, 4}),
                         "np.exp2(x)");
         }},

    {.op = "expm1",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({-0.7768698398515702, -0.22119921692859512, 0.6487212707001282, 6.38905609893065}),
               "np.expm1(x)");
         }},

    {.op = "log",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(0.5, 4, positive(),
                         f64({-1.3862943611198906, 0.0, 0.9162907318741551, 2.1972245773362196}),
                         "np.log(x)");
         }},

    {.op = "log1p",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(-0.5, 4, positive(),
                         f64({0.22314355131420976, 0.6931471805599453, 1.252762968495368, 2.302585092994046}),
                         "np.log1p(x)");
         }},

    {.op = "log2",
     .samples =
         [] {
           return of_one(0.5, 4, positive(), f64({-2, 0, 1.3219280948873624, 3.169925001442312}),
                         "np.log2(x)");
         }},

    {.op = "log10",
     .samples =
         [] {
           return of_one(0.5, 4, positive(),
                         f64({-0.6020599913279624, 0, 0.3979400086720376, 0.9542425094393249}),
                         "np.log10(x)");
         }},

    {.op = "logaddexp",
     .oracle = "np.logaddexp(a, b)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, -2, 2), uniform({2, 3}, -2, 2, 1)}},
               {.inputs = {f64({{-1.5, 0.5, 2}, {1000, 3, -2}}), f64({2, -0.5, 4})},
                .expected = {f64({{2.0297504182726205, 0.8132616875182228, 4.126928011042972},
                                  {1000, 3.0297504182726205, 4.00247568513773}})}}};
         }},

    {.op = "sin",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               -4, 4, signs(),
               f64({-0.9974949866040544, -0.24740395925452294, 0.479425538604203, 0.9092974268256817}),
               "np.sin(x)");
         }},

    {.op = "cos",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               -4, 4, signs(),
               f64({0.0707372016677029, 0.9689124217106447, 0.8775825618903728, -0.4161468365471424}),
               "np.cos(x)");
         }},

    {.op = "tan",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               -1.2, 1.2, signs(),
               f64({-14.101419947171719, -0.25534192122103627, 0.5463024898437905, -2.185039863261519}),
               "np.tan(x)");
         }},

    {.op = "asin",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               -0.9, 0.9, inner(),
               f64({-0.8480620789814809, -0.25268025514207865, 0.5235987755982989, 1.0654358165107394}),
               "np.arcsin(x)");
         }},

    {.op = "acos",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               -0.9, 0.9, inner(),
               f64({2.4188584057763776, 1.8234765819369751, 1.0471975511965976, 0.5053605102841573}),
               "np.arccos(x)");
         }},

    {.op = "atan",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({-0.982793723247329, -0.24497866312686414, 0.4636476090008061, 1.1071487177940904}),
               "np.arctan(x)");
         }},

    {.op = "atan2",
     .oracle = "np.arctan2(a, b)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, -2, 2), uniform({2, 3}, 0.5, 2, 1)}},
               {.inputs = {f64({{-1.5, 0.5, 2}, {0.75, 3, -2}}), f64({2, -0.5, -4})},
                .expected = {f64({{-0.6435011087932845, 2.356194490192345, 2.677945044588987},
                                  {0.35877067027057225, 1.7359450042095235, -2.677945044588987}})}}};
         }},

    {.op = "hypot",
     .oracle = "np.hypot(a, b)",
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, -2, 2), uniform({2, 3}, 0.5, 2, 1)}},
               {.inputs = {f64({{-1.5, 0.5, 2}, {0.75, 3, -2}}), f64({2, -0.5, -4})},
                .expected = {f64({{2.5, 0.7071067811865476, 4.47213595499958},
                                  {2.1360009363293826, 3.0413812651491097, 4.47213595499958}})}}};
         }},

    {.op = "sinh",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({-2.1292794550948173, -0.2526123168081683, 0.5210953054937474, 3.6268604078470186}),
               "np.sinh(x)");
         }},

    {.op = "cosh",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(-2, 2, signs(),
                         f64({2.352409615243247, 1.031413099879573, 1.1276259652063807, 3.7621956910836314}),
                         "np.cosh(x)");
         }},

    {.op = "tanh",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({-0.9051482536448665, -0.24491866240370913, 0.46211715726000973, 0.9640275800758169}),
               "np.tanh(x)");
         }},

    {.op = "asinh",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({-1.1947632172871092, -0.24746646154726346, 0.48121182505960347, 1.4436354751788103}),
               "np.arcsinh(x)");
         }},

    {.op = "acosh",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(1.2, 4, above(),
                         f64({0.6931471805599453, 0.9624236501192069, 1.762747174039086, 2.993222846126381}),
                         "np.arccosh(x)");
         }},

    {.op = "atanh",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               -0.9, 0.9, inner(),
               f64({-0.9729550745276566, -0.25541281188299536, 0.5493061443340549, 1.354025100551105}),
               "np.arctanh(x)");
         }},

    {.op = "sigmoid",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({0.18242552380635635, 0.43782349911420193, 0.6224593312018546, 0.8807970779778823}),
               "1 / (1 + np.exp(-x))");
         }},

    {.op = "log_sigmoid",
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({-1.7014132779827524, -0.8259394198788436, -0.4740769841801067, -0.1269280110429725}),
               "-np.logaddexp(0, -x)");
         }},

    {.op = "pow",
     .takes_complex = true,
     .oracle = "np.power(a, b)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0.5, 2), uniform({2, 3}, -2, 2, 1)}},
                                      {.inputs = {positive(), f64({2, -1.5, 0.5, 1.5})},
                                       .expected = {f64({0.0625, 1.0, 1.5811388300841898, 27.0})}}};
         }},

    {.op = "xlogy",
     .takes_complex = true,
     .oracle = "a * np.log(b)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0.5, 2), uniform({2, 3}, 0.5, 3, 1)}},
                                      {.inputs = {f64({0.75, 1.5, 0.5, -2}), f64({0.5, 1.25, 0.25, 3})},
                                       .expected = {f64({-0.5198603854199589, 0.3347153269713146,
                                                         -0.6931471805599453, -2.197224577336219})}},
                                      {.inputs = {c128({{1, 2}, {-1, 0.5}}), c128({{0.5, -1}, {-2, 0.25}})},
                                       .expected = {c128({{2.3258692112452857, -0.8840051664798807},
                                                          {-2.2095181033494438, -2.666788022129068}})}}};
         }},

    {.op = "xlog1py",
     .takes_complex = true,
     .oracle = "a * np.log1p(b)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0.5, 2), uniform({2, 3}, -0.5, 3, 1)}},
                                      {.inputs = {f64({0.75, 1.5, 0.5, -2}), f64({-0.5, 1.25, 0.25, 3})},
                                       .expected = {f64({-0.5198603854199589, 1.2163953243244932,
                                                         0.11157177565710487, -2.772588722239781})}}};
         }},

    {.op = "xdivy",
     .takes_complex = true,
     .oracle = "a / b",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0.5, 2), uniform({2, 3}, 0.5, 3, 1)}},
                                      {.inputs = {f64({0.75, 1.5, 0.5, -2}), f64({0.5, 1.25, -0.25, 3})},
                                       .expected = {f64({1.5, 1.2, -2, -0.6666666666666666})}}};
         }},

    {.op = "logistic",
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({0.18242552380635632, 0.43782349911420193, 0.6224593312018546, 0.8807970779778825}),
               "1 / (1 + np.exp(-x))");
         }},

    {.op = "logistic_slope",
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({0.14914645207033286, 0.24613408273759835, 0.2350037122015945, 0.10499358540350652}),
               "np.exp(-x) / (1 + np.exp(-x)) ** 2");
         }},

    {.op = "one_minus_square",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(-2, 2, signs(), f64({-1.25, 0.9375, 0.75, -3.0}), "1 - x * x");
         }},

    {.op = "asin_slope",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               -0.9, 0.9, inner(),
               f64({1.5118578920369088, 1.0327955589886444, 1.1547005383792515, 2.0655911179772888}),
               "1 / np.sqrt(1 - x * x)");
         }},

    {.op = "acosh_slope",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               1.2, 4, above(),
               f64({1.3333333333333333, 0.8944271909999159, 0.35355339059327373, 0.10050378152592121}),
               "1 / np.sqrt(x * x - 1)");
         }},

    {.op = "atan_slope",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(-2, 2, signs(), f64({0.3076923076923077, 0.9411764705882353, 0.8, 0.2}),
                         "1 / (1 + x * x)");
         }},

    {.op = "asinh_slope",
     .takes_complex = true,
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({0.5547001962252291, 0.9701425001453319, 0.8944271909999159, 0.4472135954999579}),
               "1 / np.sqrt(1 + x * x)");
         }},

    {.op = "over_hypot",
     .oracle = "a / np.hypot(a, b)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0.5, 2), uniform({2, 3}, 0.5, 3, 1)}},
                                      {.inputs = {f64({0.75, 1.5, 0.5, -2}), f64({0.5, 1.25, -0.25, 3})},
                                       .expected = {f64({0.8320502943378437, 0.7682212795973759,
                                                         0.8944271909999159, -0.5547001962252291})}}};
         }},

    {.op = "gaussian",
     .oracle = "np.exp(-c * x * x)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0.5, 2), uniform({3}, 0.5, 1, 1)}},
                                      {.inputs = {f64({0.75, 1.5, 0.5, -2}), f64({1, 0.5, -1, 0.5})},
                                       .expected = {f64({0.569782824730923, 0.32465246735834974,
                                                         1.2840254166877414, 0.13533528323661267})}}};
         }},
};

}   // namespace

std::span<const OpSamples> elementary_samples() { return elementary_table; }

}   // namespace tapedeck::test
