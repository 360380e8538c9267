// Elementary functions, element by element: powers, exponentials, logarithms and trigonometric functions. In:
// tensors. Out: a tensor of their shape.
#include "kernels/simd/sleef.h"
#include "op/elementwise.h"
#include "op/rules.h"
#include "ops/elementwise/slopes.h"
#include "ops/infer.h"
#include "tapedeck/ops.h"
#include "tapedeck/simd/partials.h"

namespace tapedeck {

/// Where aᵇ has a derivative with respect to b, for partial::of_pow_in_b: at real numbers above 0 and at
/// complex numbers other than 0.
static Tensor has_log(const Tensor& a) { return is_complex(a.dtype()) ? not_equal(a, 0) : a > 0; }
/// For partial::of_pow_in_a.
static Tensor no_inverse(const Tensor& a, const Tensor& b) {
  const bool single = a.dtype() == DType::f32 || a.dtype() == DType::c64;
  const double normal =
      single ? static_cast<double>(std::numeric_limits<float>::min()) : std::numeric_limits<double>::min();
  return logical_and(abs(a) < normal, equal(b, 0));
}

namespace {

constexpr auto power = [](auto a, auto b) { return pow(a, b); };

constexpr Op elementary_table[] = {
    {.name = "sqrt",
     .doc = "√x.",
     .tensorflow = "Sqrt",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_short_complex([](auto x) { return sqrt(x); }),
     .rule = partials(partial::of_sqrt)},

    {.name = "rsqrt",
     .doc = "1 / √x.",
     .tensorflow = "Rsqrt",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_short_complex([](auto x) { return 1 / sqrt(x); }),
     .rule = partials(partial::of_rsqrt)},

    {.name = "cbrt",
     .doc = "The real cube root of x.",
     .tensorflow = "",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return cbrt(x); }),
     .rule = partials(partial::of_cbrt)},

    {.name = "exp",
     .doc = "eˣ.",
     .tensorflow = "Exp",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return exp(x); }),
     .rule = partials(partial::of_exp)},

    {.name = "exp2",
     .doc = "2ˣ.",
     .tensorflow = "",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return exp2(x); }),
     .rule = partials(partial::of_exp2)},

    {.name = "expm1",
     .doc = "eˣ - 1; accurate near 0.",
     .tensorflow = "Expm1",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return expm1(x); }),
     .rule = partials(partial::of_expm1)},

    {.name = "log",
     .doc = "Natural logarithm of x.",
     .tensorflow = "Log",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return log(x); }),
     .rule = partials(partial::of_log)},

    {.name = "log1p",
     .doc = "Natural logarithm of 1 + x; accurate near 0.",
     .tensorflow = "Log1p",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return log1p(x); }),
     .rule = partials(partial::of_log1p)},

    {.name = "log2",
     .doc = "Logarithm of x to the base 2.",
     .tensorflow = "",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return log2(x); }),
     .rule = partials(partial::of_log2)},

    {.name = "log10",
     .doc = "Logarithm of x to the base 10.",
     .tensorflow = "",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return log10(x); }),
     .rule = partials(partial::of_log10)},

    {.name = "logaddexp",
     .doc = "log(eᵃ + eᵇ), computed without overflow.",
     .tensorflow = "",
     .args = {"a", "b"},
     .infer = elementwise,
     .forward = map([](auto a, auto b) { return logaddexp(a, b); }),
     .rule = partials(partial::of_logaddexp_in_a, partial::of_logaddexp_in_b)},

    {.name = "sin",
     .doc = "Sine of x.",
     .tensorflow = "Sin",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return sin(x); }),
     .rule = partials(partial::of_sin)},

    {.name = "cos",
     .doc = "Cosine of x.",
     .tensorflow = "Cos",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return cos(x); }),
     .rule = partials(partial::of_cos)},

    {.name = "tan",
     .doc = "Tangent of x.",
     .tensorflow = "Tan",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return tan(x); }),
     .rule = partials(partial::of_tan)},

    {.name = "asin",
     .doc = "The angle in [-π/2, π/2] whose sine is x.",
     .tensorflow = "Asin",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return asin(x); }),
     .rule = partials(partial::of_asin)},

    {.name = "acos",
     .doc = "The angle in [0, π] whose cosine is x.",
     .tensorflow = "Acos",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return acos(x); }),
     .rule = partials(partial::of_acos)},

    {.name = "atan",
     .doc = "The angle in [-π/2, π/2] whose tangent is x.",
     .tensorflow = "Atan",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return atan(x); }),
     .rule = partials(partial::of_atan)},

    {.name = "atan2",
     .doc = "The angle of the point (b, a), in [-π, π].",
     .tensorflow = "Atan2",
     .args = {"a", "b"},
     .infer = elementwise,
     .forward = map([](auto a, auto b) { return atan2(a, b); }),
     .rule = partials(partial::of_atan2_in_a, partial::of_atan2_in_b)},

    {.name = "hypot",
     .doc = "√(a² + b²), computed without overflow; the gradient at (0, 0) is 0.",
     .tensorflow = "",
     .args = {"a", "b"},
     .infer = elementwise,
     .forward = map([](auto a, auto b) { return hypot(a, b); }),
     .rule = partials(partial::of_hypot_in_a, partial::of_hypot_in_b)},

    {.name = "sinh",
     .doc = "(eˣ - e⁻ˣ) / 2.",
     .tensorflow = "Sinh",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return sinh(x); }),
     .rule = partials(partial::of_sinh)},

    {.name = "cosh",
     .doc = "(eˣ + e⁻ˣ) / 2.",
     .tensorflow = "Cosh",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return cosh(x); }),
     .rule = partials(partial::of_cosh)},

    {.name = "tanh",
     .doc = "Hyperbolic tangent of x.",
     .tensorflow = "Tanh",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return tanh(x); }),
     .rule = partials(partial::of_tanh)},

    {.name = "asinh",
     .doc = "The inverse of sinh.",
     .tensorflow = "Asinh",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return asinh(x); }),
     .rule = partials(partial::of_asinh)},

    {.name = "acosh",
     .doc = "The nonnegative inverse of cosh, for x ≥ 1.",
     .tensorflow = "Acosh",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return acosh(x); }),
     .rule = partials(partial::of_acosh)},

    {.name = "atanh",
     .doc = "The inverse of tanh, for x in [-1, 1].",
     .tensorflow = "Atanh",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return atanh(x); }),
     .rule = partials(partial::of_atanh)},

    {.name = "sigmoid",
     .doc = "1 / (1 + e⁻ˣ).",
     .tensorflow = "Sigmoid",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return sigmoid(x); }),
     .rule = partials(partial::of_sigmoid)},

    {.name = "log_sigmoid",
     .doc = "log(1 / (1 + e⁻ˣ)), computed without underflow.",
     .tensorflow = "",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return minimum(x, 0) - log1p(exp(-abs(x))); }),
     .rule = partials([](auto x) { return logistic(-x); })},

    {.name = "logistic",
     .doc = "sigmoid, with derivatives that are computed from x and accurate where sigmoid is near 1.",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return sigmoid(x); }),
     .rule = partials(partial::of_logistic)},

    {.name = "logistic_slope",
     .doc = "The derivative of sigmoid, sigmoid(x) sigmoid(-x).",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return logistic_slope(x); }),
     .rule = partials(partial::of_logistic_slope)},

    {.name = "one_minus_square",
     .doc = "1 - x², accurate near 1.",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return (1 - x) * (1 + x); }),
     .rule = partials(partial::of_one_minus_square)},

    {.name = "asin_slope",
     .doc = "The derivative of asin, 1 / √(1 - x²), for complex x as 1 / (√(1 - x) √(1 + x)).",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return asin_slope(x); }),
     .rule = partials(partial::of_asin_slope)},

    {.name = "acosh_slope",
     .doc = "The derivative of acosh, 1 / (√(x - 1) √(x + 1)).",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return acosh_slope(x); }),
     .rule = partials(partial::of_acosh_slope)},

    {.name = "atan_slope",
     .doc = "The derivative of atan, 1 / (1 + x²).",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return 1 / (1 + x * x); }),
     .rule = partials(partial::of_atan_slope)},

    {.name = "asinh_slope",
     .doc = "The derivative of asinh, 1 / √(1 + x²), computed without overflow; for complex x as "
            "1 / (√(1 + ix) √(1 - ix)).",
     .args = {"x"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto x) { return asinh_slope(x); }),
     .rule = partials(partial::of_asinh_slope)},

    {.name = "over_hypot",
     .doc = "a / hypot(a, b), the derivative of hypot in a; 0 where both are 0.",
     .args = {"a", "b"},
     .infer = elementwise,
     .forward = map([](auto a, auto b) { return div_no_nan(a, hypot(a, b)); }),
     .rule = partials(
         [](auto a, auto b) {
           const auto r = hypot(a, b), ratio = div_no_nan(b, r);
           return div_no_nan(ratio * ratio, r);
         },
         [](auto a, auto b, auto y) {
           const auto r = hypot(a, b);
           return div_no_nan(-y * div_no_nan(b, r), r);
         })},

    {.name = "gaussian",
     .doc = "exp(-c x²), with x² in twice the precision if c is 1, -1 or ½.",
     .args = {"x", "c"},
     .infer = elementwise,
     .forward = map([](auto x, auto c) { return gaussian(x, c); }),
     .rule = partials(partial::of_gaussian_in_x, [](auto x, auto, auto y) { return -(x * x) * y; })},

    {.name = "pow",
     .doc = "a to the power b; the derivative with respect to b is aᵇ·log a where a is positive, else 0.",
     .tensorflow = "Pow",
     .args = {"a", "b"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto a, auto b) { return pow(a, b); }),
     .rule =
         partials([](auto a, auto b) { return partial::of_pow_in_a(a, b, power); }, partial::of_pow_in_b)},

    {.name = "xlogy",
     .doc = "a·log b, but 0 with gradients of 0 where a is 0.",
     .tensorflow = "Xlogy",
     .args = {"a", "b"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto a, auto b) { return xlogy(a, b); }),
     .rule = partials([](auto a, auto b) { return xlogy(where(equal(a, 0), 0, 1), b); },
                      [](auto a, auto b) { return xdivy(a, b); })},

    {.name = "xlog1py",
     .doc = "a·log(1 + b), but 0 with gradients of 0 where a is 0.",
     .tensorflow = "Xlog1py",
     .args = {"a", "b"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto a, auto b) { return xlog1py(a, b); }),
     .rule = partials([](auto a, auto b) { return xlog1py(where(equal(a, 0), 0, 1), b); },
                      [](auto a, auto b) { return xdivy(a, 1 + b); })},

    {.name = "xdivy",
     .doc = "a / b, but 0 with gradients of 0 where a is 0.",
     .tensorflow = "Xdivy",
     .args = {"a", "b"},
     .infer = complex_elementwise,
     .forward = map_complex([](auto a, auto b) { return xdivy(a, b); }),
     .rule = partials([](auto a, auto b) { return xdivy(where(equal(a, 0), 0, 1), b); },
                      [](auto a, auto b) { return xdivy(xdivy(-a, b), b); })},
};

}   // namespace

Tensor sqrt(Operand x) { return find(elementary_table, "sqrt")(x); }
Tensor rsqrt(Operand x) { return find(elementary_table, "rsqrt")(x); }
Tensor cbrt(Operand x) { return find(elementary_table, "cbrt")(x); }
Tensor exp(Operand x) { return find(elementary_table, "exp")(x); }
Tensor exp2(Operand x) { return find(elementary_table, "exp2")(x); }
Tensor expm1(Operand x) { return find(elementary_table, "expm1")(x); }
Tensor log(Operand x) { return find(elementary_table, "log")(x); }
Tensor log1p(Operand x) { return find(elementary_table, "log1p")(x); }
Tensor log2(Operand x) { return find(elementary_table, "log2")(x); }
Tensor log10(Operand x) { return find(elementary_table, "log10")(x); }
Tensor sin(Operand x) { return find(elementary_table, "sin")(x); }
Tensor cos(Operand x) { return find(elementary_table, "cos")(x); }
Tensor tan(Operand x) { return find(elementary_table, "tan")(x); }
Tensor asin(Operand x) { return find(elementary_table, "asin")(x); }
Tensor acos(Operand x) { return find(elementary_table, "acos")(x); }
Tensor atan(Operand x) { return find(elementary_table, "atan")(x); }
Tensor sinh(Operand x) { return find(elementary_table, "sinh")(x); }
Tensor cosh(Operand x) { return find(elementary_table, "cosh")(x); }
Tensor tanh(Operand x) { return find(elementary_table, "tanh")(x); }
Tensor asinh(Operand x) { return find(elementary_table, "asinh")(x); }
Tensor acosh(Operand x) { return find(elementary_table, "acosh")(x); }
Tensor atanh(Operand x) { return find(elementary_table, "atanh")(x); }
Tensor sigmoid(Operand x) { return find(elementary_table, "sigmoid")(x); }
Tensor log_sigmoid(Operand x) { return find(elementary_table, "log_sigmoid")(x); }
Tensor logaddexp(Operand a, Operand b) { return find(elementary_table, "logaddexp")(a, b); }
Tensor atan2(Operand a, Operand b) { return find(elementary_table, "atan2")(a, b); }
Tensor hypot(Operand a, Operand b) { return find(elementary_table, "hypot")(a, b); }
Tensor pow(Operand a, Operand b) { return find(elementary_table, "pow")(a, b); }
Tensor xlogy(Operand a, Operand b) { return find(elementary_table, "xlogy")(a, b); }
Tensor xlog1py(Operand a, Operand b) { return find(elementary_table, "xlog1py")(a, b); }
Tensor xdivy(Operand a, Operand b) { return find(elementary_table, "xdivy")(a, b); }

Tensor logistic(const Tensor& x) { return find(elementary_table, "logistic")(Operand(x)); }
Tensor logistic_slope(const Tensor& x) { return find(elementary_table, "logistic_slope")(Operand(x)); }
Tensor one_minus_square(const Tensor& x) { return find(elementary_table, "one_minus_square")(Operand(x)); }
Tensor asin_slope(const Tensor& x) { return find(elementary_table, "asin_slope")(Operand(x)); }
Tensor acosh_slope(const Tensor& x) { return find(elementary_table, "acosh_slope")(Operand(x)); }
Tensor atan_slope(const Tensor& x) { return find(elementary_table, "atan_slope")(Operand(x)); }
Tensor asinh_slope(const Tensor& x) { return find(elementary_table, "asinh_slope")(Operand(x)); }
Tensor log_ratio(const Tensor& a, const Tensor& b) {
  const double nothing = -std::numeric_limits<double>::infinity();
  return where(logical_and(equal(a, nothing), equal(b, nothing)), a, a - b);
}
Tensor gaussian(const Tensor& x, double c) {
  return find(elementary_table, "gaussian")(Operand(x), Operand(c));
}
Tensor length_of(const Tensor& a, const Tensor& b) { return hypot(a, b); }
Tensor over_hypot(const Tensor& a, const Tensor& b, const Tensor&) {
  return find(elementary_table, "over_hypot")(Operand(a), Operand(b));
}

std::span<const Op> elementary_ops() { return elementary_table; }

}   // namespace tapedeck
