// Elementary functions of elements: powers, exponentials, logarithms and angles. In: tensors. Out: a tensor
// of their shape.
#include "kernels/simd/sleef.h"
#include "op/elementwise.h"
#include "op/rules.h"
#include "ops/infer.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"
#include "tapedeck/simd/partials.h"

namespace tapedeck {

/// Where aᵇ has a derivative in b, for partial::of_pow_in_b: real numbers above 0, complex ones that are not
/// 0.
static Tensor has_log(const Tensor& a) { return is_complex(a.dtype()) ? not_equal(a, 0) : a > 0; }

namespace {

using namespace samples;

/// Values of the functions that are defined between -1 and 1, or above 1.
Tensor inner() { return f64({-0.75, -0.25, 0.5, 0.875}); }
Tensor above() { return f64({1.25, 1.5, 3, 10}); }

constexpr auto power = [](auto a, auto b) { return pow(a, b); };

constexpr Op table[] = {
    {.name = "sqrt",
     .doc = "√x.",
     .tensorflow = "Sqrt",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return sqrt(x); }),
     .rule = partials(partial::of_sqrt),
     .samples =
         [] {
           return of_one(0.5, 4, positive(), f64({0.5, 1.0, 1.5811388300841898, 3.0}), "np.sqrt(x)");
         }},

    {.name = "rsqrt",
     .doc = "1 / √x.",
     .tensorflow = "Rsqrt",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return 1 / sqrt(x); }),
     .rule = partials(partial::of_rsqrt),
     .samples =
         [] {
           return of_one(0.5, 4, positive(), f64({2.0, 1.0, 0.6324555320336759, 0.3333333333333333}),
                         "1 / np.sqrt(x)");
         }},

    {.name = "cbrt",
     .doc = "The real cube root of x.",
     .tensorflow = "",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return cbrt(x); }),
     .rule = partials(partial::of_cbrt),
     .samples =
         [] {
           return of_one(
               0.5, 4, signs(),
               f64({-1.1447142425533319, -0.6299605249474366, 0.7937005259840998, 1.2599210498948732}),
               "np.cbrt(x)");
         }},

    {.name = "exp",
     .doc = "eˣ.",
     .tensorflow = "Exp",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return exp(x); }),
     .rule = partials(partial::of_exp),
     .samples =
         [] {
           return of_one(-2, 2, signs(),
                         f64({0.22313016014842982, 0.7788007830714049, 1.6487212707001282, 7.38905609893065}),
                         "np.exp(x)");
         }},

    {.name = "exp2",
     .doc = "2ˣ.",
     .tensorflow = "",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return exp2(x); }),
     .rule = partials(partial::of_exp2),
     .samples =
         [] {
           return of_one(-2, 2, signs(), f64({0.3535533905932738, 0.8408964152537145, 1.4142135623730951, 4}),
                         "np.exp2(x)");
         }},

    {.name = "expm1",
     .doc = "eˣ - 1; accurate near 0.",
     .tensorflow = "Expm1",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return expm1(x); }),
     .rule = partials(partial::of_expm1),
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({-0.7768698398515702, -0.22119921692859512, 0.6487212707001282, 6.38905609893065}),
               "np.expm1(x)");
         }},

    {.name = "log",
     .doc = "Natural logarithm of x.",
     .tensorflow = "Log",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return log(x); }),
     .rule = partials(partial::of_log),
     .samples =
         [] {
           return of_one(0.5, 4, positive(),
                         f64({-1.3862943611198906, 0.0, 0.9162907318741551, 2.1972245773362196}),
                         "np.log(x)");
         }},

    {.name = "log1p",
     .doc = "Natural logarithm of 1 + x; accurate near 0.",
     .tensorflow = "Log1p",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return log1p(x); }),
     .rule = partials(partial::of_log1p),
     .samples =
         [] {
           return of_one(-0.5, 4, positive(),
                         f64({0.22314355131420976, 0.6931471805599453, 1.252762968495368, 2.302585092994046}),
                         "np.log1p(x)");
         }},

    {.name = "log2",
     .doc = "Logarithm of x to the base 2.",
     .tensorflow = "",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return log2(x); }),
     .rule = partials(partial::of_log2),
     .samples =
         [] {
           return of_one(0.5, 4, positive(), f64({-2, 0, 1.3219280948873624, 3.169925001442312}),
                         "np.log2(x)");
         }},

    {.name = "log10",
     .doc = "Logarithm of x to the base 10.",
     .tensorflow = "",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return log10(x); }),
     .rule = partials(partial::of_log10),
     .samples =
         [] {
           return of_one(0.5, 4, positive(),
                         f64({-0.6020599913279624, 0, 0.3979400086720376, 0.9542425094393249}),
                         "np.log10(x)");
         }},

    {.name = "logaddexp",
     .doc = "log(eᵃ + eᵇ), computed without overflow.",
     .tensorflow = "",
     .args = {"a", "b"},
     .infer = elementwise,
     .forward = map([](auto a, auto b) { return logaddexp(a, b); }),
     .rule = partials(partial::of_logaddexp_in_a, partial::of_logaddexp_in_b),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, -2, 2), uniform({2, 3}, -2, 2, 1)}},
               {.inputs = {f64({{-1.5, 0.5, 2}, {1000, 3, -2}}), f64({2, -0.5, 4})},
                .expected = {f64({{2.0297504182726205, 0.8132616875182228, 4.126928011042972},
                                  {1000, 3.0297504182726205, 4.00247568513773}})},
                .oracle = "np.logaddexp(a, b)"}};
         }},

    {.name = "sin",
     .doc = "Sine of x.",
     .tensorflow = "Sin",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return sin(x); }),
     .rule = partials(partial::of_sin),
     .samples =
         [] {
           return of_one(
               -4, 4, signs(),
               f64({-0.9974949866040544, -0.24740395925452294, 0.479425538604203, 0.9092974268256817}),
               "np.sin(x)");
         }},

    {.name = "cos",
     .doc = "Cosine of x.",
     .tensorflow = "Cos",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return cos(x); }),
     .rule = partials(partial::of_cos),
     .samples =
         [] {
           return of_one(
               -4, 4, signs(),
               f64({0.0707372016677029, 0.9689124217106447, 0.8775825618903728, -0.4161468365471424}),
               "np.cos(x)");
         }},

    {.name = "tan",
     .doc = "Tangent of x.",
     .tensorflow = "Tan",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return tan(x); }),
     .rule = partials(partial::of_tan),
     .samples =
         [] {
           return of_one(
               -1.2, 1.2, signs(),
               f64({-14.101419947171719, -0.25534192122103627, 0.5463024898437905, -2.185039863261519}),
               "np.tan(x)");
         }},

    {.name = "asin",
     .doc = "The angle in [-π/2, π/2] whose sine is x.",
     .tensorflow = "Asin",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return asin(x); }),
     .rule = partials(partial::of_asin),
     .samples =
         [] {
           return of_one(
               -0.9, 0.9, inner(),
               f64({-0.8480620789814809, -0.25268025514207865, 0.5235987755982989, 1.0654358165107394}),
               "np.arcsin(x)");
         }},

    {.name = "acos",
     .doc = "The angle in [0, π] whose cosine is x.",
     .tensorflow = "Acos",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return acos(x); }),
     .rule = partials(partial::of_acos),
     .samples =
         [] {
           return of_one(
               -0.9, 0.9, inner(),
               f64({2.4188584057763776, 1.8234765819369751, 1.0471975511965976, 0.5053605102841573}),
               "np.arccos(x)");
         }},

    {.name = "atan",
     .doc = "The angle in [-π/2, π/2] whose tangent is x.",
     .tensorflow = "Atan",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return atan(x); }),
     .rule = partials(partial::of_atan),
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({-0.982793723247329, -0.24497866312686414, 0.4636476090008061, 1.1071487177940904}),
               "np.arctan(x)");
         }},

    {.name = "atan2",
     .doc = "The angle of the point (b, a), in [-π, π].",
     .tensorflow = "Atan2",
     .args = {"a", "b"},
     .infer = elementwise,
     .forward = map([](auto a, auto b) { return atan2(a, b); }),
     .rule = partials(partial::of_atan2_in_a, partial::of_atan2_in_b),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, -2, 2), uniform({2, 3}, 0.5, 2, 1)}},
               {.inputs = {f64({{-1.5, 0.5, 2}, {0.75, 3, -2}}), f64({2, -0.5, -4})},
                .expected = {f64({{-0.6435011087932845, 2.356194490192345, 2.677945044588987},
                                  {0.35877067027057225, 1.7359450042095235, -2.677945044588987}})},
                .oracle = "np.arctan2(a, b)"}};
         }},

    {.name = "hypot",
     .doc = "√(a² + b²), computed without overflow; the gradient at (0, 0) is 0.",
     .tensorflow = "",
     .args = {"a", "b"},
     .infer = elementwise,
     .forward = map([](auto a, auto b) { return hypot(a, b); }),
     .rule = partials(partial::of_hypot_in_a, partial::of_hypot_in_b),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {uniform({2, 3}, -2, 2), uniform({2, 3}, 0.5, 2, 1)}},
               {.inputs = {f64({{-1.5, 0.5, 2}, {0.75, 3, -2}}), f64({2, -0.5, -4})},
                .expected = {f64({{2.5, 0.7071067811865476, 4.47213595499958},
                                  {2.1360009363293826, 3.0413812651491097, 4.47213595499958}})},
                .oracle = "np.hypot(a, b)"}};
         }},

    {.name = "sinh",
     .doc = "(eˣ - e⁻ˣ) / 2.",
     .tensorflow = "Sinh",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return sinh(x); }),
     .rule = partials(partial::of_sinh),
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({-2.1292794550948173, -0.2526123168081683, 0.5210953054937474, 3.6268604078470186}),
               "np.sinh(x)");
         }},

    {.name = "cosh",
     .doc = "(eˣ + e⁻ˣ) / 2.",
     .tensorflow = "Cosh",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return cosh(x); }),
     .rule = partials(partial::of_cosh),
     .samples =
         [] {
           return of_one(-2, 2, signs(),
                         f64({2.352409615243247, 1.031413099879573, 1.1276259652063807, 3.7621956910836314}),
                         "np.cosh(x)");
         }},

    {.name = "tanh",
     .doc = "Hyperbolic tangent of x.",
     .tensorflow = "Tanh",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return tanh(x); }),
     .rule = partials(partial::of_tanh),
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({-0.9051482536448665, -0.24491866240370913, 0.46211715726000973, 0.9640275800758169}),
               "np.tanh(x)");
         }},

    {.name = "asinh",
     .doc = "The inverse of sinh.",
     .tensorflow = "Asinh",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return asinh(x); }),
     .rule = partials(partial::of_asinh),
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({-1.1947632172871092, -0.24746646154726346, 0.48121182505960347, 1.4436354751788103}),
               "np.arcsinh(x)");
         }},

    {.name = "acosh",
     .doc = "The inverse of cosh that is not negative, for x ≥ 1.",
     .tensorflow = "Acosh",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return acosh(x); }),
     .rule = partials(partial::of_acosh),
     .samples =
         [] {
           return of_one(1.2, 4, above(),
                         f64({0.6931471805599453, 0.9624236501192069, 1.762747174039086, 2.993222846126381}),
                         "np.arccosh(x)");
         }},

    {.name = "atanh",
     .doc = "The inverse of tanh, for x in [-1, 1].",
     .tensorflow = "Atanh",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return atanh(x); }),
     .rule = partials(partial::of_atanh),
     .samples =
         [] {
           return of_one(
               -0.9, 0.9, inner(),
               f64({-0.9729550745276566, -0.25541281188299536, 0.5493061443340549, 1.354025100551105}),
               "np.arctanh(x)");
         }},

    {.name = "sigmoid",
     .doc = "1 / (1 + e⁻ˣ).",
     .tensorflow = "Sigmoid",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return sigmoid(x); }),
     .rule = partials(partial::of_sigmoid),
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({0.18242552380635635, 0.43782349911420193, 0.6224593312018546, 0.8807970779778823}),
               "1 / (1 + np.exp(-x))");
         }},

    {.name = "log_sigmoid",
     .doc = "log(1 / (1 + e⁻ˣ)), computed without underflow.",
     .tensorflow = "",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return minimum(x, 0) - log1p(exp(-abs(x))); }),
     .rule = partials([](auto x) { return sigmoid(-x); }),
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({-1.7014132779827524, -0.8259394198788436, -0.4740769841801067, -0.1269280110429725}),
               "-np.logaddexp(0, -x)");
         }},

    {.name = "pow",
     .doc = "a to the power b; the derivative in b is aᵇ·log a where a is positive, else 0.",
     .tensorflow = "Pow",
     .args = {"a", "b"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto a, auto b) { return pow(a, b); }),
     .rule = partials([](auto a, auto b) { return partial::of_pow_in_a(a, b, power); }, partial::of_pow_in_b),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0.5, 2), uniform({2, 3}, -2, 2, 1)}},
                                      {.inputs = {positive(), f64({2, -1.5, 0.5, 1.5})},
                                       .expected = {f64({0.0625, 1.0, 1.5811388300841898, 27.0})},
                                       .oracle = "np.power(a, b)"}};
         }},

    {.name = "xlogy",
     .doc = "a·log b, and 0 with gradients of 0 where a is 0.",
     .tensorflow = "Xlogy",
     .args = {"a", "b"},
     .infer = elementwise,
     .forward = map([](auto a, auto b) { return xlogy(a, b); }),
     .rule = partials([](auto a, auto b) { return xlogy(where(equal(a, 0), 0, 1), b); },
                      [](auto a, auto b) { return xdivy(a, b); }),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0.5, 2), uniform({2, 3}, 0.5, 3, 1)}},
                                      {.inputs = {f64({0.75, 1.5, 0.5, -2}), f64({0.5, 1.25, 0.25, 3})},
                                       .expected = {f64({-0.5198603854199589, 0.3347153269713146,
                                                         -0.6931471805599453, -2.197224577336219})},
                                       .oracle = "a * np.log(b)"}};
         }},

    {.name = "xlog1py",
     .doc = "a·log(1 + b), and 0 with gradients of 0 where a is 0.",
     .tensorflow = "Xlog1py",
     .args = {"a", "b"},
     .infer = elementwise,
     .forward = map([](auto a, auto b) { return xlog1py(a, b); }),
     .rule = partials([](auto a, auto b) { return xlog1py(where(equal(a, 0), 0, 1), b); },
                      [](auto a, auto b) { return xdivy(a, 1 + b); }),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0.5, 2), uniform({2, 3}, -0.5, 3, 1)}},
                                      {.inputs = {f64({0.75, 1.5, 0.5, -2}), f64({-0.5, 1.25, 0.25, 3})},
                                       .expected = {f64({-0.5198603854199589, 1.2163953243244932,
                                                         0.11157177565710487, -2.772588722239781})},
                                       .oracle = "a * np.log1p(b)"}};
         }},

    {.name = "xdivy",
     .doc = "a / b, and 0 with gradients of 0 where a is 0.",
     .tensorflow = "Xdivy",
     .args = {"a", "b"},
     .infer = elementwise,
     .forward = map([](auto a, auto b) { return xdivy(a, b); }),
     .rule = partials([](auto a, auto b) { return xdivy(where(equal(a, 0), 0, 1), b); },
                      [](auto a, auto b) { return xdivy(-a, b * b); }),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, 0.5, 2), uniform({2, 3}, 0.5, 3, 1)}},
                                      {.inputs = {f64({0.75, 1.5, 0.5, -2}), f64({0.5, 1.25, -0.25, 3})},
                                       .expected = {f64({1.5, 1.2, -2, -0.6666666666666666})},
                                       .oracle = "a / b"}};
         }},
};

}   // namespace

Tensor sqrt(Operand x) { return find(table, "sqrt")(x); }
Tensor rsqrt(Operand x) { return find(table, "rsqrt")(x); }
Tensor cbrt(Operand x) { return find(table, "cbrt")(x); }
Tensor exp(Operand x) { return find(table, "exp")(x); }
Tensor exp2(Operand x) { return find(table, "exp2")(x); }
Tensor expm1(Operand x) { return find(table, "expm1")(x); }
Tensor log(Operand x) { return find(table, "log")(x); }
Tensor log1p(Operand x) { return find(table, "log1p")(x); }
Tensor log2(Operand x) { return find(table, "log2")(x); }
Tensor log10(Operand x) { return find(table, "log10")(x); }
Tensor sin(Operand x) { return find(table, "sin")(x); }
Tensor cos(Operand x) { return find(table, "cos")(x); }
Tensor tan(Operand x) { return find(table, "tan")(x); }
Tensor asin(Operand x) { return find(table, "asin")(x); }
Tensor acos(Operand x) { return find(table, "acos")(x); }
Tensor atan(Operand x) { return find(table, "atan")(x); }
Tensor sinh(Operand x) { return find(table, "sinh")(x); }
Tensor cosh(Operand x) { return find(table, "cosh")(x); }
Tensor tanh(Operand x) { return find(table, "tanh")(x); }
Tensor asinh(Operand x) { return find(table, "asinh")(x); }
Tensor acosh(Operand x) { return find(table, "acosh")(x); }
Tensor atanh(Operand x) { return find(table, "atanh")(x); }
Tensor sigmoid(Operand x) { return find(table, "sigmoid")(x); }
Tensor log_sigmoid(Operand x) { return find(table, "log_sigmoid")(x); }
Tensor logaddexp(Operand a, Operand b) { return find(table, "logaddexp")(a, b); }
Tensor atan2(Operand a, Operand b) { return find(table, "atan2")(a, b); }
Tensor hypot(Operand a, Operand b) { return find(table, "hypot")(a, b); }
Tensor pow(Operand a, Operand b) { return find(table, "pow")(a, b); }
Tensor xlogy(Operand a, Operand b) { return find(table, "xlogy")(a, b); }
Tensor xlog1py(Operand a, Operand b) { return find(table, "xlog1py")(a, b); }
Tensor xdivy(Operand a, Operand b) { return find(table, "xdivy")(a, b); }

std::span<const Op> elementary_ops() { return table; }

}   // namespace tapedeck
