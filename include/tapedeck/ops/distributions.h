// Random tensors from parameterized distributions, from a key; see random.h for keys. Parameters are promoted
// to one dtype, that of the result, which must be floating-point (otherwise DTypeError), and broadcast to
// `shape` (otherwise ShapeError). Each element is the quantile of the distribution at a uniform random
// number, computed from 64 random bits for any dtype. It is NaN if the parameters are invalid.
#pragma once
#include "tapedeck/ops/random.h"

namespace tapedeck::random {

/// Gamma distribution with density y^(alpha - 1) exp(-y) / Γ(alpha), for alpha > 0; multiply by a scale for
/// other scales. The gradient with respect to alpha is that of the quantile: Figurnov, Mohamed & Mnih,
/// "Implicit reparameterization gradients", 2018, equation 5.
TAPEDECK_EXPORT Tensor gamma(const Shape& shape, Operand alpha, Key key);
/// The derivative with respect to alpha of samples y of gamma(alpha), elementwise: -∂P(alpha, y)/∂alpha
/// divided by the density at y, with the distribution function P = igamma. Differentiable.
TAPEDECK_EXPORT Tensor gamma_grad(Operand alpha, Operand y);
/// Poisson distribution with mean `rate` ≥ 0: counts k with probability rateᵏ exp(-rate) / k!. No gradient.
TAPEDECK_EXPORT Tensor poisson(const Shape& shape, Operand rate, Key key);
/// Binomial distribution: number of successes in n trials (a whole number) with success probability p. No
/// gradient.
TAPEDECK_EXPORT Tensor binomial(const Shape& shape, Operand n, Operand p, Key key);
/// Normal distribution with the given mean and standard deviation (> 0), truncated to [low, high]. Bounds may
/// be infinite. Gradients with respect to all four parameters are those of the quantile.
TAPEDECK_EXPORT Tensor parameterized_truncated_normal(const Shape& shape, Operand mean, Operand stddev,
                                                      Operand low, Operand high, Key key);
/// Samples i64 indices [..., n] with probabilities softmax(logits), where logits are floating-point [..., k];
/// a logit of -inf has probability 0. No gradient. Throws ArgumentError for a row that contains NaN or +inf,
/// or only -inf, and for negative n; ShapeError if k is 0 and n is not.
TAPEDECK_EXPORT Tensor categorical(const Tensor& logits, std::int64_t n, Key key);

}   // namespace tapedeck::random
