// Elementwise elementary functions: powers, exponentials, logarithms and trigonometric functions. In: tensors
// that broadcast. Out: a tensor of the broadcast shape.
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
/// Where b is 0 and a⁻¹ may be infinite, for partial::of_pow_in_a.
static Tensor no_inverse(const Tensor& a, const Tensor& b) {
  const bool single = a.dtype() == DType::f32 || a.dtype() == DType::c64;
  const double normal =
      single ? static_cast<double>(std::numeric_limits<float>::min()) : std::numeric_limits<double>::min();
  return logical_and(abs(a) < normal, equal(b, 0));
}

namespace {

constexpr auto power = [](auto a, auto b) { return pow(a, b); };

constexpr Op kSqrt = {
    .name = "sqrt",
    .doc = "√x.",
    .tensorflow = "Sqrt",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_short_complex([](auto x) { return sqrt(x); }),
    .rule = partials(partial::of_sqrt),
};

constexpr Op kRsqrt = {
    .name = "rsqrt",
    .doc = "1 / √x.",
    .tensorflow = "Rsqrt",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_short_complex([](auto x) { return 1 / sqrt(x); }),
    .rule = partials(partial::of_rsqrt),
};

constexpr Op kCbrt = {
    .name = "cbrt",
    .doc = "The real cube root of x.",
    .tensorflow = "",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return cbrt(x); }),
    .rule = partials(partial::of_cbrt),
};

constexpr Op kExp = {
    .name = "exp",
    .doc = "eˣ.",
    .tensorflow = "Exp",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return exp(x); }),
    .rule = partials(partial::of_exp),
};

constexpr Op kExp2 = {
    .name = "exp2",
    .doc = "2ˣ.",
    .tensorflow = "",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return exp2(x); }),
    .rule = partials(partial::of_exp2),
};

constexpr Op kExpm1 = {
    .name = "expm1",
    .doc = "eˣ - 1; accurate near 0.",
    .tensorflow = "Expm1",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return expm1(x); }),
    .rule = partials(partial::of_expm1),
};

constexpr Op kLog = {
    .name = "log",
    .doc = "Natural logarithm of x.",
    .tensorflow = "Log",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return log(x); }),
    .rule = partials(partial::of_log),
};

constexpr Op kLog1p = {
    .name = "log1p",
    .doc = "Natural logarithm of 1 + x; accurate near 0.",
    .tensorflow = "Log1p",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return log1p(x); }),
    .rule = partials(partial::of_log1p),
};

constexpr Op kLog2 = {
    .name = "log2",
    .doc = "Logarithm of x to the base 2.",
    .tensorflow = "",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return log2(x); }),
    .rule = partials(partial::of_log2),
};

constexpr Op kLog10 = {
    .name = "log10",
    .doc = "Logarithm of x to the base 10.",
    .tensorflow = "",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return log10(x); }),
    .rule = partials(partial::of_log10),
};

constexpr Op kLogaddexp = {
    .name = "logaddexp",
    .doc = "log(eᵃ + eᵇ), computed without overflow.",
    .tensorflow = "",
    .args = {"a", "b"},
    .infer = elementwise,
    .forward = map([](auto a, auto b) { return logaddexp(a, b); }),
    .rule = partials(partial::of_logaddexp_in_a, partial::of_logaddexp_in_b),
};

constexpr Op kSin = {
    .name = "sin",
    .doc = "Sine of x.",
    .tensorflow = "Sin",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return sin(x); }),
    .rule = partials(partial::of_sin),
};

constexpr Op kCos = {
    .name = "cos",
    .doc = "Cosine of x.",
    .tensorflow = "Cos",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return cos(x); }),
    .rule = partials(partial::of_cos),
};

constexpr Op kTan = {
    .name = "tan",
    .doc = "Tangent of x.",
    .tensorflow = "Tan",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return tan(x); }),
    .rule = partials(partial::of_tan),
};

constexpr Op kAsin = {
    .name = "asin",
    .doc = "The angle in [-π/2, π/2] whose sine is x.",
    .tensorflow = "Asin",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return asin(x); }),
    .rule = partials(partial::of_asin),
};

constexpr Op kAcos = {
    .name = "acos",
    .doc = "The angle in [0, π] whose cosine is x.",
    .tensorflow = "Acos",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return acos(x); }),
    .rule = partials(partial::of_acos),
};

constexpr Op kAtan = {
    .name = "atan",
    .doc = "The angle in [-π/2, π/2] whose tangent is x.",
    .tensorflow = "Atan",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return atan(x); }),
    .rule = partials(partial::of_atan),
};

constexpr Op kAtan2 = {
    .name = "atan2",
    .doc = "The angle of the point (b, a), in [-π, π].",
    .tensorflow = "Atan2",
    .args = {"a", "b"},
    .infer = elementwise,
    .forward = map([](auto a, auto b) { return atan2(a, b); }),
    .rule = partials(partial::of_atan2_in_a, partial::of_atan2_in_b),
};

constexpr Op kHypot = {
    .name = "hypot",
    .doc = "√(a² + b²), computed without overflow; the gradient at (0, 0) is 0.",
    .tensorflow = "",
    .args = {"a", "b"},
    .infer = elementwise,
    .forward = map([](auto a, auto b) { return hypot(a, b); }),
    .rule = partials(partial::of_hypot_in_a, partial::of_hypot_in_b),
};

constexpr Op kSinh = {
    .name = "sinh",
    .doc = "(eˣ - e⁻ˣ) / 2.",
    .tensorflow = "Sinh",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return sinh(x); }),
    .rule = partials(partial::of_sinh),
};

constexpr Op kCosh = {
    .name = "cosh",
    .doc = "(eˣ + e⁻ˣ) / 2.",
    .tensorflow = "Cosh",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return cosh(x); }),
    .rule = partials(partial::of_cosh),
};

constexpr Op kTanh = {
    .name = "tanh",
    .doc = "Hyperbolic tangent of x.",
    .tensorflow = "Tanh",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return tanh(x); }),
    .rule = partials(partial::of_tanh),
};

constexpr Op kAsinh = {
    .name = "asinh",
    .doc = "The inverse of sinh.",
    .tensorflow = "Asinh",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return asinh(x); }),
    .rule = partials(partial::of_asinh),
};

constexpr Op kAcosh = {
    .name = "acosh",
    .doc = "The nonnegative inverse of cosh, for x ≥ 1.",
    .tensorflow = "Acosh",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return acosh(x); }),
    .rule = partials(partial::of_acosh),
};

constexpr Op kAtanh = {
    .name = "atanh",
    .doc = "The inverse of tanh, for x in [-1, 1].",
    .tensorflow = "Atanh",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return atanh(x); }),
    .rule = partials(partial::of_atanh),
};

constexpr Op kSigmoid = {
    .name = "sigmoid",
    .doc = "1 / (1 + e⁻ˣ).",
    .tensorflow = "Sigmoid",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return sigmoid(x); }),
    .rule = partials(partial::of_sigmoid),
};

constexpr Op kLogSigmoid = {
    .name = "log_sigmoid",
    .doc = "log(1 / (1 + e⁻ˣ)), computed without underflow.",
    .tensorflow = "",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return minimum(x, 0) - log1p(exp(-abs(x))); }),
    .rule = partials([](auto x) { return logistic(-x); }),
};

constexpr Op kLogistic = {
    .name = "logistic",
    .doc = "sigmoid, with derivatives that are computed from x and accurate where sigmoid is near 1.",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return sigmoid(x); }),
    .rule = partials(partial::of_logistic),
};

constexpr Op kLogisticSlope = {
    .name = "logistic_slope",
    .doc = "The derivative of sigmoid, sigmoid(x) sigmoid(-x).",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return logistic_slope(x); }),
    .rule = partials(partial::of_logistic_slope),
};

constexpr Op kOneMinusSquare = {
    .name = "one_minus_square",
    .doc = "1 - x², accurate near 1.",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return (1 - x) * (1 + x); }),
    .rule = partials(partial::of_one_minus_square),
};

constexpr Op kAsinSlope = {
    .name = "asin_slope",
    .doc = "The derivative of asin, 1 / √(1 - x²), for complex x as 1 / (√(1 - x) √(1 + x)).",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return asin_slope(x); }),
    .rule = partials(partial::of_asin_slope),
};

constexpr Op kAcoshSlope = {
    .name = "acosh_slope",
    .doc = "The derivative of acosh, 1 / (√(x - 1) √(x + 1)).",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return acosh_slope(x); }),
    .rule = partials(partial::of_acosh_slope),
};

constexpr Op kAtanSlope = {
    .name = "atan_slope",
    .doc = "The derivative of atan, 1 / (1 + x²).",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return 1 / (1 + x * x); }),
    .rule = partials(partial::of_atan_slope),
};

constexpr Op kAsinhSlope = {
    .name = "asinh_slope",
    .doc =
        "The derivative of asinh, 1 / √(1 + x²), computed without overflow; for complex x as "
        "1 / (√(1 + ix) √(1 - ix)).",
    .args = {"x"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto x) { return asinh_slope(x); }),
    .rule = partials(partial::of_asinh_slope),
};

constexpr Op kOverHypot = {
    .name = "over_hypot",
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
        }),
};

constexpr Op kGaussian = {
    .name = "gaussian",
    .doc = "exp(-c x²), with x² in twice the precision if c is 1, -1 or ½.",
    .args = {"x", "c"},
    .infer = elementwise,
    .forward = map([](auto x, auto c) { return gaussian(x, c); }),
    .rule = partials(partial::of_gaussian_in_x, [](auto x, auto, auto y) { return -(x * x) * y; }),
};

constexpr Op kPow = {
    .name = "pow",
    .doc = "a to the power b; the derivative with respect to b is aᵇ·log a where a is positive, else 0.",
    .tensorflow = "Pow",
    .args = {"a", "b"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto a, auto b) { return pow(a, b); }),
    .rule = partials([](auto a, auto b) { return partial::of_pow_in_a(a, b, power); }, partial::of_pow_in_b),
};

constexpr Op kXlogy = {
    .name = "xlogy",
    .doc = "a·log b, but 0 with gradients of 0 where a is 0.",
    .tensorflow = "Xlogy",
    .args = {"a", "b"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto a, auto b) { return xlogy(a, b); }),
    .rule = partials([](auto a, auto b) { return xlogy(where(equal(a, 0), 0, 1), b); },
                     [](auto a, auto b) { return xdivy(a, b); }),
};

constexpr Op kXlog1py = {
    .name = "xlog1py",
    .doc = "a·log(1 + b), but 0 with gradients of 0 where a is 0.",
    .tensorflow = "Xlog1py",
    .args = {"a", "b"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto a, auto b) { return xlog1py(a, b); }),
    .rule = partials([](auto a, auto b) { return xlog1py(where(equal(a, 0), 0, 1), b); },
                     [](auto a, auto b) { return xdivy(a, 1 + b); }),
};

constexpr Op kXdivy = {
    .name = "xdivy",
    .doc = "a / b, but 0 with gradients of 0 where a is 0.",
    .tensorflow = "Xdivy",
    .args = {"a", "b"},
    .infer = complex_elementwise,
    .forward = map_complex([](auto a, auto b) { return xdivy(a, b); }),
    .rule = partials([](auto a, auto b) { return xdivy(where(equal(a, 0), 0, 1), b); },
                     [](auto a, auto b) { return xdivy(xdivy(-a, b), b); }),
};

constexpr const Op* elementary_table[] = {
    &kSqrt,      &kRsqrt,      &kCbrt,       &kExp,        &kExp2,          &kExpm1,
    &kLog,       &kLog1p,      &kLog2,       &kLog10,      &kLogaddexp,     &kSin,
    &kCos,       &kTan,        &kAsin,       &kAcos,       &kAtan,          &kAtan2,
    &kHypot,     &kSinh,       &kCosh,       &kTanh,       &kAsinh,         &kAcosh,
    &kAtanh,     &kSigmoid,    &kLogSigmoid, &kLogistic,   &kLogisticSlope, &kOneMinusSquare,
    &kAsinSlope, &kAcoshSlope, &kAtanSlope,  &kAsinhSlope, &kOverHypot,     &kGaussian,
    &kPow,       &kXlogy,      &kXlog1py,    &kXdivy};

}   // namespace

Tensor sqrt(Operand x) { return kSqrt(x); }
Tensor rsqrt(Operand x) { return kRsqrt(x); }
Tensor cbrt(Operand x) { return kCbrt(x); }
Tensor exp(Operand x) { return kExp(x); }
Tensor exp2(Operand x) { return kExp2(x); }
Tensor expm1(Operand x) { return kExpm1(x); }
Tensor log(Operand x) { return kLog(x); }
Tensor log1p(Operand x) { return kLog1p(x); }
Tensor log2(Operand x) { return kLog2(x); }
Tensor log10(Operand x) { return kLog10(x); }
Tensor sin(Operand x) { return kSin(x); }
Tensor cos(Operand x) { return kCos(x); }
Tensor tan(Operand x) { return kTan(x); }
Tensor asin(Operand x) { return kAsin(x); }
Tensor acos(Operand x) { return kAcos(x); }
Tensor atan(Operand x) { return kAtan(x); }
Tensor sinh(Operand x) { return kSinh(x); }
Tensor cosh(Operand x) { return kCosh(x); }
Tensor tanh(Operand x) { return kTanh(x); }
Tensor asinh(Operand x) { return kAsinh(x); }
Tensor acosh(Operand x) { return kAcosh(x); }
Tensor atanh(Operand x) { return kAtanh(x); }
Tensor sigmoid(Operand x) { return kSigmoid(x); }
Tensor log_sigmoid(Operand x) { return kLogSigmoid(x); }
Tensor logaddexp(Operand a, Operand b) { return kLogaddexp(a, b); }
Tensor atan2(Operand a, Operand b) { return kAtan2(a, b); }
Tensor hypot(Operand a, Operand b) { return kHypot(a, b); }
Tensor pow(Operand a, Operand b) { return kPow(a, b); }
Tensor xlogy(Operand a, Operand b) { return kXlogy(a, b); }
Tensor xlog1py(Operand a, Operand b) { return kXlog1py(a, b); }
Tensor xdivy(Operand a, Operand b) { return kXdivy(a, b); }

Tensor logistic(const Tensor& x) { return kLogistic(Operand(x)); }
Tensor logistic_slope(const Tensor& x) { return kLogisticSlope(Operand(x)); }
Tensor one_minus_square(const Tensor& x) { return kOneMinusSquare(Operand(x)); }
Tensor asin_slope(const Tensor& x) { return kAsinSlope(Operand(x)); }
Tensor acosh_slope(const Tensor& x) { return kAcoshSlope(Operand(x)); }
Tensor atan_slope(const Tensor& x) { return kAtanSlope(Operand(x)); }
Tensor asinh_slope(const Tensor& x) { return kAsinhSlope(Operand(x)); }
Tensor log_ratio(const Tensor& a, const Tensor& b) {
  const double nothing = -std::numeric_limits<double>::infinity();
  return where(logical_and(equal(a, nothing), equal(b, nothing)), a, a - b);
}
Tensor gaussian(const Tensor& x, double c) { return kGaussian(Operand(x), Operand(c)); }
Tensor length_of(const Tensor& a, const Tensor& b) { return hypot(a, b); }
Tensor over_hypot(const Tensor& a, const Tensor& b, const Tensor&) {
  return kOverHypot(Operand(a), Operand(b));
}

std::span<const Op* const> elementary_ops() { return elementary_table; }

}   // namespace tapedeck
