// Samples of distributions with parameters. In: a key and parameters. Out: for each element, the quantile of
// its distribution at a uniform number; its derivatives with respect to the parameters are derivatives of the
// quantile.
#include "ops/random/distributions.h"

#include <array>

#include "core/format.h"
#include "core/storage.h"
#include "kernels/random/quantile.h"
#include "kernels/random/random.h"
#include "kernels/special/special.h"
#include "op/rules.h"
#include "ops/infer.h"
#include "ops/special/scalar_functions.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using random::Key;

Spec drawn(const Call& c) {
  const DType dtype = elementwise(c).dtype;
  const Shape& shape = c.attrs<DrawAttrs>().shape;
  for (int i = 0; i < c.x.size(); ++i)
    if (!broadcasts_to(c.x[i].shape(), shape))
      throw_error<ShapeError>("{}: {} does not broadcast to shape: {} is {}, shape is {}", c.op.name,
                              c.op.args[i], c.op.args[i], c.x[i].spec(), shape);
  return {dtype, shape};
}

/// Parameter i in the form that kernels accept: one element, or broadcast to the shape of y.
Tensor parameter(const Call& c, int i, const Tensor& y) {
  return c.x[i].size() == 1 ? c.x[i] : broadcast_to(c.x[i], y.shape());
}

/// The second derivative of igamma with respect to a, divided by the density at y.
Tensor second_over_density(const Tensor& a, const Tensor& y) {
  return igamma_grad_a(a, y, 2) * exp(lgamma(a) + y - (a - 1) * log(y));
}

namespace fn {

constexpr OfNumbers<kernels::gamma_grad, random::gamma_grad> gamma_grad;
constexpr OfNumbers<kernels::second_igamma_grad_over_density, second_over_density> second_over_density;
constexpr OfNumbers<kernels::digamma, tapedeck::digamma> digamma;

}   // namespace fn

/// Sets dy[0] to the sum of dx times partial over the parameters that have a tangent.
void jvp_by(const std::array<Tensor, kMaxInputs>& partials, Refs dx, std::span<Tensor> dy) {
  for (int i = 0; i < dx.size(); ++i) {
    if (!dx[i].defined()) continue;
    const Tensor term = dx[i] * partials[static_cast<std::size_t>(i)];
    dy[0] = dy[0].defined() ? dy[0] + term : term;
  }
}

std::vector<Spec> infer_probabilities(const Call& c) {
  const Spec& spec = c.attrs<ProbabilitiesAttrs>().spec;
  if (!is_floating(spec.dtype) || is_half(spec.dtype))
    throw_error<DTypeError>("{}: returns f32 or f64, not {}", c.op.name, spec.dtype);
  return {spec, spec};
}
std::vector<Tensor> probabilities(const Key& key, const Spec& spec);

/// The partials of y with respect to the parameters. y is the quantile, at a fixed p, of a normal
/// distribution truncated to [low, high]: with z, a and b for y, low and high in standard deviations from the
/// mean, φ(z) dz = (1 - p) φ(a) da + p φ(b) db. Bounds beyond 10¹⁸ have no weight, like infinite ones.
std::array<Tensor, kMaxInputs> truncated_normal_partials(const Call& c) {
  const Tensor &mean = c.x[0], &stddev = c.x[1], &y = c.y[0], low = clip(c.x[2], -1e18, 1e18),
               high = clip(c.x[3], -1e18, 1e18);
  const std::vector<Tensor> drawn = probabilities(c.attrs<DrawAttrs>().key, y.spec());
  const Tensor &p = drawn[0], &q = drawn[1];
  const Tensor z = (y - mean) / stddev, a = (low - mean) / stddev, b = (high - mean) / stddev;
  const Tensor by_low = q * exp((y - low) / stddev * (z + a) * 0.5);
  const Tensor by_high = p * exp((y - high) / stddev * (z + b) * 0.5);
  return {1 - by_low - by_high, z - a * by_low - b * by_high, by_low, by_high};
}

/// The running sums of the unnormalised probabilities along the last axis of logits.
Tensor sums_of(const Call& c) {
  const Tensor& logits = c.x[0];
  const std::int64_t k = logits.shape()[logits.ndim() - 1];
  const Tensor weights = exp(logits - max(logits, {-1}, {.keepdims = true}));
  Tensor sums = allocate({DType::f64, {logits.size() / k, k}});
  if (const auto r = kernels::running_sums(reshape(weights, sums.shape()), sums))
    throw_error<ArgumentError>(
        "categorical: row {} of logits has NaN or infinity, or nothing above -infinity: logits is {}", *r,
        logits.spec());
  return sums;
}

Spec infer_categorical(const Call& c) {
  const Spec logits = infer_rows(c);
  const std::int64_t n = c.attrs<CategoricalAttrs>().n, k = logits.shape[logits.shape.ndim() - 1];
  if (n < 0) throw_error<ArgumentError>("categorical: n is {}; use 0 or more", n);
  Shape shape = logits.shape;
  shape.set(shape.ndim() - 1, n);
  if (k == 0 && shape.size() > 0) c.throw_shape_error("nothing to choose from");
  return {DType::i64, shape};
}

Tensor drawn_by(const Op& op, const Shape& shape, Key key, std::initializer_list<Operand> parameters) {
  Tensor converted[kMaxInputs];
  const Tensor* x[kMaxInputs];
  ops::promote(parameters, converted, x);
  return op({x, static_cast<int>(parameters.size())}, Attrs(DrawAttrs{key, shape}));
}

constexpr Op kGamma = {
    .name = "gamma",
    .doc =
        "Gamma-distributed numbers with density yᵅ⁻¹ e⁻ʸ / Γ(α), drawn by inverting the distribution "
        "function. The gradient with respect to α is the derivative of the inverse (Figurnov, Mohamed & Mnih "
        "2018, equation 5).",
    .tensorflow = "RandomGamma StatelessRandomGammaV2 StatelessRandomGammaV3",
    .args = {"alpha"},
    .infer = drawn,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::gamma(c.attrs<DrawAttrs>().key, parameter(c, 0, y[0]), y[0]);
        },
    .rule = Rule::custom(
        {.x = 0b1, .y = true},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = unbroadcast(c, std::move(dy[0]).dense() * random::gamma_grad(c.x[0], c.y[0]), 0);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          dy[0] = dx[0] * random::gamma_grad(c.x[0], c.y[0]);
        }),
};

constexpr Op kGammaGrad = {
    .name = "gamma_grad",
    .doc =
        "The derivative of a sample y of gamma(α) with respect to α: -∂igamma(α, y)/∂α divided by the "
        "density at y.",
    .tensorflow = "RandomGammaGrad",
    .args = {"alpha", "y"},
    .infer = elementwise,
    .forward = map(fn::gamma_grad),
    // The result is g = -∂P/∂α / p, with P for igamma and p for the density, which has the logarithmic
    // derivatives log y - ψ(α) and (α - 1)/y - 1.
    .rule = partials(
        [](auto a, auto y, auto g) { return -fn::second_over_density(a, y) - g * (log(y) - fn::digamma(a)); },
        [](auto a, auto y, auto g) { return fn::digamma(a) - log(y) - g * ((a - 1) / y - 1); }),
};

constexpr Op kPoisson = {
    .name = "poisson",
    .doc =
        "Poisson-distributed counts with probability rᵏ e⁻ʳ / k!, drawn by inverting the distribution "
        "function.",
    .tensorflow = "RandomPoisson RandomPoissonV2 StatelessRandomPoisson",
    .args = {"rate"},
    .infer = drawn,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::poisson(c.attrs<DrawAttrs>().key, parameter(c, 0, y[0]), y[0]);
        },
    .rule = Rule::none(),
};

constexpr Op kBinomial = {
    .name = "binomial",
    .doc =
        "Numbers of successes in n trials of probability p, with distribution (n choose k) pᵏ (1 - "
        "p)ⁿ⁻ᵏ, drawn by inverting the distribution function.",
    .tensorflow = "StatelessRandomBinomial",
    .args = {"n", "p"},
    .infer = drawn,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::binomial(c.attrs<DrawAttrs>().key, parameter(c, 0, y[0]), parameter(c, 1, y[0]), y[0]);
        },
    .rule = Rule::none(),
};

constexpr Op kCategorical = {
    .name = "categorical",
    .doc = "Indices drawn with probabilities softmax(logits), n for each row of logits.",
    .tensorflow = "Multinomial StatelessMultinomial",
    .args = {"logits"},
    .infer = infer_categorical,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          if (y[0].size() > 0) kernels::categorical(c.attrs<CategoricalAttrs>().key, sums_of(c), y[0]);
        },
    .rule = Rule::none(),
};

constexpr Op kProbabilities = {
    .name = "probabilities",
    .doc =
        "Uniform numbers p in (0, 1), and 1 - p, at which ops that sample distributions evaluate the "
        "quantile function.",
    .infer = infer_probabilities,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::probabilities(c.attrs<ProbabilitiesAttrs>().key, y[0], y[1]);
        },
    .rule = Rule::none(),
};

constexpr Op kParameterizedTruncatedNormal = {
    .name = "parameterized_truncated_normal",
    .doc =
        "Normal numbers truncated to [low, high], drawn by inverting the distribution function; gradients "
        "are derivatives of the inverse.",
    .tensorflow = "ParameterizedTruncatedNormal StatelessParameterizedTruncatedNormal",
    .args = {"mean", "stddev", "low", "high"},
    .infer = drawn,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::parameterized_truncated_normal(c.attrs<DrawAttrs>().key, parameter(c, 0, y[0]),
                                                  parameter(c, 1, y[0]), parameter(c, 2, y[0]),
                                                  parameter(c, 3, y[0]), y[0]);
        },
    .rule = Rule::custom(
        {.x = 0b1111, .y = true},
        [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
          const Tensor dy = std::move(dys[0]).dense();
          const auto partials = truncated_normal_partials(c);
          for (int i = 0; i < 4; ++i)
            if (c.needs_gradient(i))
              dx[static_cast<std::size_t>(i)] = unbroadcast(c, dy * partials[static_cast<std::size_t>(i)], i);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) { jvp_by(truncated_normal_partials(c), dx, dy); }),
};

constexpr const Op* distributions_table[] = {&kGamma,
                                             &kGammaGrad,
                                             &kPoisson,
                                             &kBinomial,
                                             &kCategorical,
                                             &kProbabilities,
                                             &kParameterizedTruncatedNormal};

std::vector<Tensor> probabilities(const Key& key, const Spec& spec) {
  return kProbabilities.run({}, Attrs(ProbabilitiesAttrs{key, spec}));
}

}   // namespace

namespace random {

Tensor gamma(const Shape& shape, Operand alpha, Key key) { return drawn_by(kGamma, shape, key, {alpha}); }
Tensor gamma_grad(Operand alpha, Operand y) { return kGammaGrad(alpha, y); }
Tensor poisson(const Shape& shape, Operand rate, Key key) { return drawn_by(kPoisson, shape, key, {rate}); }
Tensor binomial(const Shape& shape, Operand n, Operand p, Key key) {
  return drawn_by(kBinomial, shape, key, {n, p});
}
Tensor parameterized_truncated_normal(const Shape& shape, Operand mean, Operand stddev, Operand low,
                                      Operand high, Key key) {
  return drawn_by(kParameterizedTruncatedNormal, shape, key, {mean, stddev, low, high});
}
Tensor categorical(const Tensor& logits, std::int64_t n, Key key) {
  return kCategorical(logits, CategoricalAttrs{key, n});
}

}   // namespace random

std::span<const Op* const> distributions_ops() { return distributions_table; }

}   // namespace tapedeck
