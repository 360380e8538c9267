// Elementwise special functions: error, gamma, beta and zeta functions. In: tensors that broadcast. Out: a
// tensor of the broadcast shape, computed in double; erf and erfc in their dtype.
#include "ops/special/special.h"

#include <cmath>

#include "core/format.h"
#include "core/storage.h"
#include "kernels/simd/sleef.h"
#include "kernels/special/igamma_grad.h"
#include "kernels/special/special.h"
#include "ops/elementwise/slopes.h"
#include "ops/infer.h"
#include "ops/special/scalar_functions.h"
#include "tapedeck/ops/special.h"
#include "tapedeck/simd/partials.h"

namespace tapedeck {
namespace {

constexpr double kTwoBySqrtPi = 1.1283791670955126, kSqrtTwoPi = 2.5066282746310002;

double first_igamma_grad(double a, double x) { return kernels::igamma_grad(a, x, 1); }
Tensor trigamma_op(const Tensor& x) { return polygamma(1, x); }
Tensor first_igamma_grad_op(const Tensor& a, const Tensor& x) { return igamma_grad_a(a, x); }
Tensor gamma_density_op(const Tensor& a, const Tensor& x);

namespace fn {

constexpr OfNumbers<kernels::erfinv, tapedeck::erfinv> erfinv;
constexpr OfNumbers<kernels::erfcinv, tapedeck::erfcinv> erfcinv;
constexpr OfNumbers<kernels::ndtri, tapedeck::ndtri> ndtri;
constexpr OfNumbers<kernels::lgamma, tapedeck::lgamma> lgamma;
constexpr OfNumbers<kernels::digamma, tapedeck::digamma> digamma;
constexpr OfNumbers<kernels::trigamma, trigamma_op> trigamma;
constexpr OfNumbers<kernels::polygamma, tapedeck::polygamma> polygamma;
constexpr OfNumbers<kernels::zeta, tapedeck::zeta> zeta;
constexpr OfNumbers<kernels::igamma, tapedeck::igamma, kernels::short_igamma> igamma;
constexpr OfNumbers<kernels::igammac, tapedeck::igammac, kernels::short_igammac> igammac;
constexpr OfNumbers<first_igamma_grad, first_igamma_grad_op> igamma_grad_a;
constexpr OfNumbers<kernels::gamma_density, gamma_density_op> gamma_density;
constexpr OfNumbers<kernels::betainc, tapedeck::betainc> betainc;

}   // namespace fn

/// log xⁿ: n log x, and 0 for 0⁰. (xlogy has no gradient in n where n is 0.)
constexpr auto log_of_power = [](const auto& n, const auto& x) {
  return where(equal(x, 0), xlogy(n, x), n * log(where(equal(x, 0), 1, x)));
};

/// n / x, and 0 for 0 / 0. (xdivy has no gradient in n where n is 0.)
constexpr auto quotient = [](const auto& n, const auto& x) {
  return where(equal(x, 0), xdivy(n, x), n / where(equal(x, 0), 1, x));
};

/// The rule of an elementwise op whose only derivative, partial(c), is with respect to its last input.
template <class F> constexpr Rule in_the_last(F) {
  return Rule::custom(
      {.x = 0b111},
      [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
        const int last = c.x.size() - 1;
        if (c.needs_gradient(last))
          dx[static_cast<std::size_t>(last)] = unbroadcast(c, std::move(dy[0]).dense() * F{}(c), last);
      },
      [](const Call& c, Refs dx, std::span<Tensor> dy) {
        if (const Tensor& tangent = dx[c.x.size() - 1]; tangent.defined()) dy[0] = tangent * F{}(c);
      });
}

/// xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b), DLMF 8.17.1 and 5.12.1.
constexpr auto beta_density = [](const Call& c) {
  const Tensor &a = c.x[0], &b = c.x[1], &x = c.x[2];
  return exp(log_of_power(a - 1, x) + log_of_power(b - 1, 1 - x) + lgamma(a + b) - lgamma(a) - lgamma(b));
};

Spec infer_igamma_grad(const Call& c) {
  const int order = c.attrs<OrderAttrs>().order;
  if (order < 1 || order > kernels::kLargestOrder)
    throw_error<ArgumentError>("igamma_grad_a: order {} is not in 1..{}", order, kernels::kLargestOrder);
  return elementwise(c);
}

/// The derivative of order `order` with respect to a of p = xᵃ⁻¹ e⁻ˣ / Γ(a), the derivative of igamma with
/// respect to x: p' = p (log x - ψ(a)), and higher orders by the product rule.
Tensor density_derivative(const Tensor& a, const Tensor& x, int order) {
  std::vector<Tensor> p = {gamma_density_op(a, x)}, slopes;
  for (int k = 0; k < order; ++k) {
    slopes.push_back(k == 0 ? log(x) - digamma(a) : -polygamma(k, a));
    Tensor sum;
    double binomial = 1;
    for (int i = 0; i <= k; ++i) {
      const Tensor term = p[static_cast<std::size_t>(i)] * slopes[static_cast<std::size_t>(k - i)] * binomial;
      sum = sum.defined() ? sum + term : term;
      binomial = binomial * (k - i) / (i + 1);
    }
    p.push_back(sum);
  }
  return p.back();
}

void vjp_of_igamma_grad(const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  const Tensor dy = std::move(dys[0]).dense();
  const int order = c.attrs<OrderAttrs>().order;
  if (c.needs_gradient(0)) dx[0] = unbroadcast(c, dy * igamma_grad_a(c.x[0], c.x[1], order + 1), 0);
  if (c.needs_gradient(1)) dx[1] = unbroadcast(c, dy * density_derivative(c.x[0], c.x[1], order), 1);
}
void jvp_of_igamma_grad(const Call& c, Refs dx, std::span<Tensor> dy) {
  const int order = c.attrs<OrderAttrs>().order;
  const Tensor left = dx[0].defined() ? dx[0] * igamma_grad_a(c.x[0], c.x[1], order + 1) : Tensor();
  const Tensor right = dx[1].defined() ? dx[1] * density_derivative(c.x[0], c.x[1], order) : Tensor();
  dy[0] = left.defined() && right.defined() ? left + right : left.defined() ? left : right;
}

Tensor next_derivative(const Call& c) {
  const auto& [f, order] = c.attrs<DerivativeAttrs>();
  return special_derivative(f, order + 1, c.x[0]);
}

constexpr Op kErf = {
    .name = "erf",
    .doc = "The error function 2/√π ∫₀ˣ exp(-t²) dt.",
    .tensorflow = "Erf",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return erf(x); }),
    .rule = partials(partial::of_erf),
};

constexpr Op kErfc = {
    .name = "erfc",
    .doc = "1 - erf(x), accurate where the result is small.",
    .tensorflow = "Erfc",
    .args = {"x"},
    .infer = elementwise,
    .forward = map([](auto x) { return erfc(x); }),
    .rule = partials(partial::of_erfc),
};

constexpr Op kErfinv = {
    .name = "erfinv",
    .doc = "The inverse of erf, for x in [-1, 1].",
    .tensorflow = "Erfinv",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::erfinv),
    .rule = partials([](auto, auto y) { return times(gaussian(y, -1), 1 / kTwoBySqrtPi); }),
};

constexpr Op kErfcinv = {
    .name = "erfcinv",
    .doc = "The inverse of erfc, for x in [0, 2].",
    .tensorflow = "",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::erfcinv),
    .rule = partials([](auto, auto y) { return times(gaussian(y, -1), -1 / kTwoBySqrtPi); }),
};

constexpr Op kNdtri = {
    .name = "ndtri",
    .doc = "The quantile function of the normal distribution, -√2 erfcinv(2x), for x in [0, 1].",
    .tensorflow = "Ndtri",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::ndtri),
    .rule = partials([](auto, auto y) { return times(gaussian(y, -0.5), kSqrtTwoPi); }),
};

constexpr Op kLgamma = {
    .name = "lgamma",
    .doc = "log |Γ(x)|.",
    .tensorflow = "Lgamma",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::lgamma),
    .rule = partials([](auto x) { return fn::digamma(x); }),
};

constexpr Op kDigamma = {
    .name = "digamma",
    .doc = "ψ(x), the derivative of lgamma.",
    .tensorflow = "Digamma",
    .args = {"x"},
    .infer = elementwise,
    .forward = map(fn::digamma),
    .rule = partials([](auto x) { return fn::trigamma(x); }),
};

constexpr Op kPolygamma = {
    .name = "polygamma",
    .doc =
        "The n-th derivative of digamma, (-1)ⁿ⁺¹ n! ζ(n + 1, x) (DLMF 25.11.12); no gradient with "
        "respect to n.",
    .tensorflow = "Polygamma",
    .args = {"n", "x"},
    .infer = elementwise,
    .forward = map(fn::polygamma),
    .rule = in_the_last([](const Call& c) { return fn::polygamma(c.x[0] + 1, c.x[1]); }),
};

constexpr Op kZeta = {
    .name = "zeta",
    .doc = "The Hurwitz zeta function Σ (q + k)⁻ˢ over k = 0, 1, 2, …; no gradient with respect to s.",
    .tensorflow = "Zeta",
    .args = {"s", "q"},
    .infer = elementwise,
    .forward = map(fn::zeta),
    .rule = in_the_last([](const Call& c) { return -c.x[0] * fn::zeta(c.x[0] + 1, c.x[1]); }),
};

constexpr Op kIgamma = {
    .name = "igamma",
    .doc = "The regularized incomplete gamma function P(a, x) = 1/Γ(a) ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt.",
    .tensorflow = "Igamma",
    .args = {"a", "x"},
    .infer = elementwise,
    .forward = map(fn::igamma),
    .rule = partials([](auto a, auto x) { return fn::igamma_grad_a(a, x); },
                     [](auto a, auto x) { return fn::gamma_density(a, x); }),
};

constexpr Op kIgammac = {
    .name = "igammac",
    .doc = "1 - igamma(a, x), accurate where the result is small.",
    .tensorflow = "Igammac",
    .args = {"a", "x"},
    .infer = elementwise,
    .forward = map(fn::igammac),
    .rule = partials([](auto a, auto x) { return -fn::igamma_grad_a(a, x); },
                     [](auto a, auto x) { return -fn::gamma_density(a, x); }),
};

constexpr Op kGammaDensity = {
    .name = "gamma_density",
    .doc = "The derivative of igamma with respect to x, xᵃ⁻¹ e⁻ˣ / Γ(a).",
    .args = {"a", "x"},
    .infer = elementwise,
    .forward = map(fn::gamma_density),
    .rule = partials([](auto a, auto x, auto y) { return y * (log(x) - fn::digamma(a)); },
                     [](auto a, auto x, auto y) { return y * (quotient(a - 1, x) - 1); }),
};

constexpr Op kIgammaGradA = {
    .name = "igamma_grad_a",
    .doc = "The derivative of igamma with respect to a, of the order given by its attribute.",
    .tensorflow = "IgammaGradA",
    .args = {"a", "x"},
    .infer = infer_igamma_grad,
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  allocate_for(y[0]);
                  kernels::igamma_grad(broadcast_to(c.x[0], y[0].shape()), broadcast_to(c.x[1], y[0].shape()),
                                       c.attrs<OrderAttrs>().order, y[0]);
                },
                Outputs::by_kernel},
    .rule = Rule::custom({.x = 0b11}, vjp_of_igamma_grad, jvp_of_igamma_grad),
};

constexpr Op kSpecialDerivative = {
    .name = "special_derivative",
    .doc = "A derivative of a Bessel function or a special integral, of the order given by its attributes.",
    .args = {"x"},
    .infer = elementwise,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          const auto& [f, order] = c.attrs<DerivativeAttrs>();
          kernels::derivative(f, order, c.x[0], y[0]);
        },
    .rule = Rule::custom(
        {.x = 1},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = std::move(dy[0]).dense() * next_derivative(c);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = dx[0] * next_derivative(c); }),
};

constexpr Op kBetainc = {
    .name = "betainc",
    .doc =
        "The regularized incomplete beta function 1/B(a, b) ∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt; no gradients with "
        "respect to a and b.",
    .tensorflow = "Betainc",
    .args = {"a", "b", "x"},
    .infer = elementwise,
    .forward = map(fn::betainc),
    .rule = in_the_last(beta_density),
};

constexpr const Op* special_table[] = {
    &kErf,       &kErfc, &kErfinv, &kErfcinv, &kNdtri,        &kLgamma,      &kDigamma,
    &kPolygamma, &kZeta, &kIgamma, &kIgammac, &kGammaDensity, &kIgammaGradA, &kSpecialDerivative,
    &kBetainc};

Tensor gamma_density_op(const Tensor& a, const Tensor& x) { return kGammaDensity(Operand(a), Operand(x)); }

}   // namespace

Tensor erf(Operand x) { return kErf(x); }
Tensor erfc(Operand x) { return kErfc(x); }
Tensor erfinv(Operand x) { return kErfinv(x); }
Tensor erfcinv(Operand x) { return kErfcinv(x); }
Tensor ndtri(Operand x) { return kNdtri(x); }
Tensor lgamma(Operand x) { return kLgamma(x); }
Tensor digamma(Operand x) { return kDigamma(x); }
Tensor polygamma(Operand n, Operand x) { return kPolygamma(n, x); }
Tensor zeta(Operand s, Operand q) { return kZeta(s, q); }
Tensor igamma(Operand a, Operand x) { return kIgamma(a, x); }
Tensor igammac(Operand a, Operand x) { return kIgammac(a, x); }
Tensor igamma_grad_a(const Tensor& a, const Tensor& x, int order) {
  return kIgammaGradA(a, x, OrderAttrs{order});
}
Tensor special_derivative(kernels::SpecialFunction f, int order, const Tensor& x) {
  return kSpecialDerivative(x, DerivativeAttrs{f, order});
}
Tensor betainc(Operand a, Operand b, Operand x) { return kBetainc(a, b, x); }

std::span<const Op* const> special_ops() { return special_table; }

}   // namespace tapedeck
