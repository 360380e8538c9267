// Random tensors from a key. The same key gives the same numbers on every machine and with any number of
// threads (normal ones: within rounding between instruction sets). Philox4x32-10: Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", SC11.
#pragma once
#include "tapedeck/operand.h"
#include "tapedeck/random_key.h"

namespace tapedeck::random {

/// Standard normal numbers (Box–Muller). f32 or f64.
TAPEDECK_EXPORT Tensor normal(const Shape& shape, Key key, DType dtype = DType::f32);
/// Standard normal numbers within two standard deviations: what lies outside is left out, not moved to the
/// bounds. f32 or f64.
TAPEDECK_EXPORT Tensor truncated_normal(const Shape& shape, Key key, DType dtype = DType::f32);
/// Evenly distributed in [low, high). f32 or f64.
TAPEDECK_EXPORT Tensor uniform(const Shape& shape, Key key, double low = 0, double high = 1,
                               DType dtype = DType::f32);
/// 0 … n - 1 in random order, i64.
TAPEDECK_EXPORT Tensor permutation(std::int64_t n, Key key);

// Distributions with parameters, which are f32 or f64 and broadcast to `shape`; the result has their dtype.
// Each number is the quantile of its distribution at a uniform number, from 64 random bits in either dtype.
// Where a distribution does not have the parameters it is NaN.

/// Numbers of density y^(alpha - 1) exp(-y) / Γ(alpha), for alpha above 0; times a scale they are those of
/// that scale. The gradient in alpha is that of the quantile: Figurnov, Mohamed & Mnih, "Implicit
/// reparameterization gradients", 2018, equation 5.
TAPEDECK_EXPORT Tensor gamma(const Shape& shape, Operand alpha, Key key);
/// That derivative of numbers y of gamma(alpha) in alpha, element by element.
TAPEDECK_EXPORT Tensor gamma_grad(Operand alpha, Operand y);
/// Counts of events of which `rate`, 0 or more, are expected. No gradient.
TAPEDECK_EXPORT Tensor poisson(const Shape& shape, Operand rate, Key key);
/// Counts of successes in n trials, a whole number, of probability p each. No gradient.
TAPEDECK_EXPORT Tensor binomial(const Shape& shape, Operand n, Operand p, Key key);
/// Numbers of the normal distribution with this mean and standard deviation, above 0, of those in [low,
/// high]. Bounds may be infinite. Gradients in all four are those of the quantile.
TAPEDECK_EXPORT Tensor parameterized_truncated_normal(const Shape& shape, Operand mean, Operand stddev,
                                                      Operand low, Operand high, Key key);
/// For logits [..., k], f32 or f64, i64 indices [..., n] of probability softmax(logits); -infinity has none.
/// No gradient. Throws ArgumentError for rows with NaN or infinity, or without a number above -infinity.
TAPEDECK_EXPORT Tensor categorical(const Tensor& logits, std::int64_t n, Key key);

}   // namespace tapedeck::random
