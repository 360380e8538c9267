// Elementwise activations. In: floating-point tensors that broadcast. Out: a tensor of the broadcast shape.
// A derivative that is 0 everywhere is written as an expression with the value 0, so that its own derivative
// is zeros instead of undefined.
#include <cmath>
#include <limits>

#include "core/format.h"
#include "kernels/simd/sleef.h"
#include "op/elementwise.h"
#include "op/piecewise_constant.h"
#include "op/rules.h"
#include "ops/elementwise/slopes.h"
#include "ops/infer.h"
#include "tapedeck/ops.h"
#include "tapedeck/simd/partials.h"

namespace tapedeck {
namespace {

// The constants of selu, which preserve mean 0 and variance 1 of a standard normal input: Klambauer et al.
// 2017, section 2.
constexpr double kAlpha = 1.6732632423543772848170429916717, kScale = 1.0507009873554804934193349852946;
// The standard normal density at 0, 1 / √(2π).
constexpr double kDensity = 0.39894228040143267794;
// The constants in the tanh approximation of gelu: √(2/π), and the coefficient of the cubic term.
constexpr double kRootTwoOverPi = 0.79788456080286535588, kCubic = 0.044715;

using detail::beside;

// The argument of sigmoid in the approximation of gelu, x sigmoid(2u): 1 + tanh(u) = 2 sigmoid(2u).
template <class V> auto gelu_exponent_of(const V& x) {
  return beside<V>(2 * kRootTwoOverPi) * (x + beside<V>(kCubic) * (x * x * x));
}

template <class T, class A> auto normal_cdf_of(const xsimd::batch<T, A>& x) { return normal_cdf(x); }
template <unsigned A> constexpr Probe<A> normal_cdf_of(Probe<A>) { return {}; }
Tensor normal_cdf_of(const Tensor& x);

// The standard normal density.
template <class V> auto normal_density_of(const V& x) { return beside<V>(kDensity) * gaussian(x, 0.5); }

// Replaces -∞ by the lowest finite number, whose product with 0 is -0 and not NaN.
template <class T, class A> xsimd::batch<T, A> not_below(const xsimd::batch<T, A>& x) {
  return maximum(x, std::numeric_limits<T>::lowest());
}

constexpr Op kRelu = {
    .name = "relu",
    .doc = "x where it is positive, else 0.",
    .tensorflow = "Relu",
    .args = {"x"},
    .infer = elementwise,
    .forward = map_short([](auto x) { return maximum(x, 0); }),
    .rule = partials([](auto, auto y) { return piecewise(where(y > 0, 1, 0), y); }),
};

constexpr Op kLeakyRelu = {
    .name = "leaky_relu",
    .doc = "x where it is positive, else alpha · x.",
    .tensorflow = "LeakyRelu",
    .args = {"x", "alpha"},
    .infer = elementwise,
    .forward = map_short([](auto x, auto alpha) { return where(x > 0, x, alpha * x); }),
    .rule = partials([](auto x, auto alpha) { return piecewise(where(x > 0, 1, alpha), x); },
                     [](auto x, auto) { return where(x > 0, 0, x); }),
};

constexpr Op kSoftplus = {
    .name = "softplus",
    .doc = "log(1 + eˣ), computed without overflow.",
    .tensorflow = "Softplus",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return maximum(x, 0) + log1p(exp(-abs(x))); }),
    .rule = partials(partial::of_softplus),
};

constexpr Op kRelu6 = {
    .name = "relu6",
    .doc = "x clamped to [0, 6]; the derivative at both ends is 0.",
    .tensorflow = "Relu6",
    .args = {"x"},
    .infer = elementwise,
    .forward = map_short([](auto x) { return minimum(maximum(x, 0), 6); }),
    .rule = partials([](auto, auto y) { return piecewise(where(y > 0, where(y < 6, 1, 0), 0), y); }),
};

constexpr Op kElu = {
    .name = "elu",
    .doc = "x where it is positive, else eˣ - 1.",
    .tensorflow = "Elu",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return where(x > 0, x, expm1(x)); }),
    .rule = partials([](auto x) { return exp(minimum(x, 0)); }),
};

constexpr Op kSelu = {
    .name = "selu",
    .doc = "λ x where x is positive, else λ α (eˣ - 1), with λ = 1.0507… and α = 1.6732….",
    .tensorflow = "Selu",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) {
      return where(x > 0, beside<decltype(x)>(kScale) * x, beside<decltype(x)>(kScale * kAlpha) * expm1(x));
    }),
    .rule = partials([](auto x) {
      return where(x > 0, beside<decltype(x)>(kScale),
                   beside<decltype(x)>(kScale * kAlpha) * exp(minimum(x, 0)));
    }),
};

constexpr Op kNormalCdf = {
    .name = "normal_cdf",
    .doc = "The probability that a standard normal variable is below x, (1 + erf(x / √2)) / 2.",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return normal_cdf_of(x); }),
    .rule = partials([](auto x) { return normal_density_of(x); }),
};

constexpr Op kGelu = {
    .name = "gelu",
    .doc =
        "x times the probability that a standard normal variable is below x; gelu(x, Gelu::tanh) "
        "runs gelu_tanh.",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return gelu(x); }),
    .rule = partials([](auto x) { return normal_cdf_of(x) + mul_no_nan(x, normal_density_of(x)); }),
};

constexpr Op kGeluTanh = {
    .name = "gelu_tanh",
    .doc = "x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2, an approximation of gelu.",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return not_below(x) * sigmoid(gelu_exponent_of(x)); }),
    .rule = partials([](auto x) {
      const auto near = minimum(maximum(x, -100), 100);   // beyond, x³ may overflow; sigmoid's slope is 0
      const auto u = gelu_exponent_of(near);
      return logistic(u) + near * logistic_slope(u) *
                               (beside<decltype(x)>(2 * kRootTwoOverPi) *
                                (1 + beside<decltype(x)>(3 * kCubic) * (near * near)));
    }),
};

constexpr Op kSilu = {
    .name = "silu",
    .doc = "x / (1 + exp(-beta x)), also known as swish.",
    .args = {"x", "beta"},
    .infer = elementwise,
    .forward = map([](auto x, auto beta) { return not_below(x) * sigmoid(beta * x); }),
    .rule = partials(
        [](auto x, auto beta) {
          const auto z = beta * x;
          return logistic(z) + mul_no_nan(z, logistic_slope(z));
        },
        [](auto x, auto beta) { return mul_no_nan(x * x, logistic_slope(beta * x)); }),
};

constexpr Op kSoftsign = {
    .name = "softsign",
    .doc = "x / (1 + |x|).",
    .tensorflow = "Softsign",
    .args = {"x"},
    .infer = elementwise,
    .forward = map_short([](auto x) {
      const auto bounded = maximum(minimum(x, 1e30f), -1e30f);   // beyond, the quotient is ±1
      return bounded / (1 + abs(bounded));
    }),
    .rule = partials([](auto x) {
      const auto r = 1 / (1 + abs(x));
      return r * r;
    }),
};

constexpr const Op* activations_table[] = {&kRelu,      &kLeakyRelu, &kSoftplus, &kRelu6, &kElu,     &kSelu,
                                           &kNormalCdf, &kGelu,      &kGeluTanh, &kSilu,  &kSoftsign};

Tensor normal_cdf_of(const Tensor& x) { return kNormalCdf(Operand(x)); }

// Throws DTypeError for integers and bools, which a number as the other operand would convert.
void require_floating_with_number(const Op& op, const Operand& x, const Operand& other) {
  const Tensor* t = x.tensor();
  if (t && t->defined() && !other.tensor() && !is_trainable(t->dtype()))
    throw_error<DTypeError>("{}: takes f32, f64, f16 or bf16, use astype: x is {}", op.name, t->spec());
}

}   // namespace

Tensor relu(Operand x) { return kRelu(x); }
Tensor leaky_relu(Operand x, Operand alpha) {
  require_floating_with_number(kLeakyRelu, x, alpha);
  return kLeakyRelu(x, alpha);
}
Tensor relu6(Operand x) { return kRelu6(x); }
Tensor elu(Operand x) { return kElu(x); }
Tensor selu(Operand x) { return kSelu(x); }
Tensor gelu(Operand x, Gelu form) { return form == Gelu::exact ? kGelu(x) : kGeluTanh(x); }
Tensor silu(Operand x, Operand beta) {
  require_floating_with_number(kSilu, x, beta);
  return kSilu(x, beta);
}
Tensor softsign(Operand x) { return kSoftsign(x); }
Tensor softplus(Operand x) { return kSoftplus(x); }

std::span<const Op* const> activations_ops() { return activations_table; }

}   // namespace tapedeck
