// Activations, element by element. In: f32 or f64. Out: the same shape, or the one that the inputs broadcast
// to. Where a derivative is the number 0, it is written as an expression that is 0: its own derivative is
// then zeros, and not none.
#include <cmath>

#include "kernels/simd/sleef.h"
#include "op/elementwise.h"
#include "op/rules.h"
#include "ops/infer.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"
#include "tapedeck/simd/partials.h"

namespace tapedeck {
namespace {

using namespace samples;

// The constants of selu, with which a standard normal input keeps mean 0 and variance 1: Klambauer et al.
// 2017, section 2.
constexpr double kAlpha = 1.6732632423543772848170429916717, kScale = 1.0507009873554804934193349852946;
// The density of standard normal numbers at 0, 1 / √(2π).
constexpr double kDensity = 0.39894228040143267794;
// Of the approximation of gelu: √(2/π), and the cubic term.
constexpr double kRootTwoOverPi = 0.79788456080286535588, kCubic = 0.044715;

using detail::beside;

// tanh of the approximation of gelu.
template <class V> auto gelu_tanh_of(const V& x) {
  return tanh(beside<V>(kRootTwoOverPi) * (x + beside<V>(kCubic) * (x * x * x)));
}

template <class T, class A> auto normal_cdf_of(const xsimd::batch<T, A>& x) { return normal_cdf(x); }
template <unsigned A> constexpr Probe<A> normal_cdf_of(Probe<A>) { return {}; }
Tensor normal_cdf_of(const Tensor& x);

// The density of standard normal numbers.
template <class V> auto normal_density_of(const V& x) { return beside<V>(kDensity) * exp(-0.5 * (x * x)); }

constexpr Op table[] = {
    {.name = "relu",
     .doc = "x where it is positive, else 0.",
     .tensorflow = "Relu",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return maximum(x, 0); }),
     .rule = partials([](auto, auto y) { return where(y > 0, 1, y); }),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {distinct({3, 5})}},
                                      {.inputs = {f64({-1.5, -0.25, 0.5, 2})},
                                       .expected = {f64({0, 0, 0.5, 2})},
                                       .oracle = "np.maximum(x, 0)"}};
         }},

    {.name = "leaky_relu",
     .doc = "x where it is positive, else alpha · x.",
     .tensorflow = "LeakyRelu",
     .args = {"x", "alpha"},
     .infer = elementwise,
     .forward = map([](auto x, auto alpha) { return where(x > 0, x, alpha * x); }),
     .rule = partials([](auto x, auto alpha) { return where(x > 0, 1, alpha); },
                      [](auto x, auto) { return where(x > 0, 0, x); }),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {distinct({2, 3}), uniform({2, 3}, 0.1, 0.3)}},
                                      {.inputs = {f64({-1.5, -0.25, 0.5, 2}), f64(0.2)},
                                       .expected = {f64({-0.3, -0.05, 0.5, 2})},
                                       .oracle = "np.where(x > 0, x, alpha * x)"}};
         }},

    {.name = "softplus",
     .doc = "log(1 + eˣ), computed without overflow.",
     .tensorflow = "Softplus",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return maximum(x, 0) + log1p(exp(-abs(x))); }),
     .rule = partials(partial::of_softplus),
     .samples =
         [] {
           return of_one(
               -2, 2, signs(),
               f64({0.2014132779827524, 0.5759394198788437, 0.9740769841801068, 2.1269280110429727}),
               "np.logaddexp(x, 0)");
         }},

    {.name = "relu6",
     .doc = "x where it is between 0 and 6, else the nearer of them; the derivative at both is 0.",
     .tensorflow = "Relu6",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return minimum(maximum(x, 0), 6); }),
     .rule = partials([](auto, auto y) { return where(y > 0, where(y < 6, 1, 6 - y), y); }),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {distinct({3, 5}) * 10}},
                                      {.inputs = {f64({-1.5, 0.5, 5.75, 6.25, 9})},
                                       .expected = {f64({0, 0.5, 5.75, 6, 6})},
                                       .oracle = "np.clip(x, 0, 6)"}};
         }},

    {.name = "elu",
     .doc = "x where it is positive, else eˣ - 1.",
     .tensorflow = "Elu",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return where(x > 0, x, expm1(x)); }),
     .rule = partials([](auto, auto y) { return where(y > 0, 1, y + 1); }),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {distinct({3, 5})}},
                                      {.inputs = {signs()},
                                       .expected = {f64({-0.7768698398515702, -0.22119921692859512, 0.5, 2})},
                                       .oracle = "np.where(x > 0, x, np.expm1(x))"}};
         }},

    {.name = "selu",
     .doc = "λ x where x is positive, else λ α (eˣ - 1), with λ = 1.0507… and α = 1.6732….",
     .tensorflow = "Selu",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) {
       return where(x > 0, beside<decltype(x)>(kScale) * x, beside<decltype(x)>(kScale * kAlpha) * expm1(x));
     }),
     .rule = partials([](auto, auto y) {
       return where(y > 0, beside<decltype(y)>(kScale), y + beside<decltype(y)>(kScale * kAlpha));
     }),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {distinct({3, 5})}},
                                      {.inputs = {signs()},
                                       .expected = {f64({-1.3658143533672527, -0.388890197478119,
                                                         0.5253504936777402, 2.101401974710961})},
                                       .oracle = "torch.nn.functional.selu(torch.tensor(x)).numpy()"}};
         }},

    {.name = "normal_cdf",
     .doc = "The probability that a standard normal number is below x, (1 + erf(x / √2)) / 2.",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return normal_cdf_of(x); }),
     .rule = partials([](auto x) { return normal_density_of(x); }),
     .samples =
         [] {
           return of_one(
               -3, 3, signs(),
               f64({0.06680720126885803, 0.4012936743170763, 0.6914624612740131, 0.9772498680518208}),
               "torch.special.ndtr(torch.tensor(x)).numpy()");
         }},

    {.name = "gelu",
     .doc = "x times the probability that a standard normal number is below it; gelu(x, Gelu::tanh) is "
            "gelu_tanh.",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return gelu(x); }),
     .rule = partials([](auto x) { return normal_cdf_of(x) + x * normal_density_of(x); }),
     .samples =
         [] {
           return of_one(
               -3, 3, signs(),
               f64({-0.1002108019032871, -0.10032341857926907, 0.34573123063700655, 1.9544997361036416}),
               "torch.nn.functional.gelu(torch.tensor(x)).numpy()");
         }},

    {.name = "gelu_tanh",
     .doc = "x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2, which is near gelu.",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return 0.5 * x * (1 + gelu_tanh_of(x)); }),
     .rule = partials([](auto x) {
       const auto t = gelu_tanh_of(x);
       return 0.5 *
              (1 + t +
               x * (1 - t * t) *
                   (beside<decltype(x)>(kRootTwoOverPi) * (1 + beside<decltype(x)>(3 * kCubic) * (x * x))));
     }),
     .samples =
         [] {
           return of_one(
               -3, 3, signs(),
               f64({-0.10042842301976707, -0.100324649298315, 0.34571400982514394, 1.954597694087775}),
               "0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))");
         }},

    {.name = "silu",
     .doc = "x / (1 + exp(-beta x)), also known as swish.",
     .args = {"x", "beta"},
     .infer = elementwise,
     .forward = map([](auto x, auto beta) { return x * sigmoid(beta * x); }),
     .rule = partials(
         [](auto x, auto beta) {
           const auto s = sigmoid(beta * x);
           return s + beta * x * (s * (1 - s));
         },
         [](auto x, auto beta) {
           const auto s = sigmoid(beta * x);
           return x * x * (s * (1 - s));
         }),
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, -3, 3), uniform({2, 3}, 0.2, 2, 1)}},
                                      {.inputs = {signs(), f64(0.5)},
                                       .expected = {f64({-0.4812319512369106, -0.11719765665656094,
                                                         0.28108825044289903, 1.4621171572600098})},
                                       .oracle = "x / (1 + np.exp(-beta * x))"}};
         }},

    {.name = "softsign",
     .doc = "x / (1 + |x|).",
     .tensorflow = "Softsign",
     .args = {"x"},
     .infer = elementwise,
     .forward = map([](auto x) { return x / (1 + abs(x)); }),
     .rule = partials([](auto x) {
       const auto r = 1 / (1 + abs(x));
       return r * r;
     }),
     .samples =
         [] {
           return std::vector<Sample>{
               {.inputs = {distinct({3, 5})}},
               {.inputs = {signs()},
                .expected = {f64({-0.6, -0.2, 0.3333333333333333, 0.6666666666666666})},
                .oracle = "x / (1 + np.abs(x))"}};
         }},
};

Tensor normal_cdf_of(const Tensor& x) { return find(table, "normal_cdf")(Operand(x)); }

}   // namespace

Tensor relu(Operand x) { return find(table, "relu")(x); }
Tensor leaky_relu(Operand x, Operand alpha) { return find(table, "leaky_relu")(x, alpha); }
Tensor relu6(Operand x) { return find(table, "relu6")(x); }
Tensor elu(Operand x) { return find(table, "elu")(x); }
Tensor selu(Operand x) { return find(table, "selu")(x); }
Tensor gelu(Operand x, Gelu form) {
  return form == Gelu::exact ? find(table, "gelu")(x) : find(table, "gelu_tanh")(x);
}
Tensor silu(Operand x, Operand beta) { return find(table, "silu")(x, beta); }
Tensor softsign(Operand x) { return find(table, "softsign")(x); }
Tensor softplus(Operand x) { return find(table, "softplus")(x); }

std::span<const Op> activations_ops() { return table; }

}   // namespace tapedeck
