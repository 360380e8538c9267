// Transformations of gradients before an update rule: clipping, weight decay, noise. Gradients that are none
// remain none. Repeated rows of slices are added up first, and other rows remain zero.
//
// The functions of namespace transforms are for Optimizer::add_transform. Numbers may be schedules; they are
// evaluated once per step. Limits below 0 throw ArgumentError, immediately or, from a schedule, in the step.
#pragma once
#include "tapedeck/ops/random.h"
#include "tapedeck/optimizer.h"

namespace tapedeck {

/// Clips elements to [low, high]. Throws ArgumentError unless low ≤ high.
TAPEDECK_EXPORT Gradient clip_by_value(const Gradient& g, double low, double high);
/// g · limit / max(|g|, limit), where |g| is the root of the sum of its squares. Throws ArgumentError for a
/// limit below 0 or NaN.
TAPEDECK_EXPORT Gradient clip_by_norm(const Gradient& g, double limit);
/// The Euclidean norm of all gradients together, as of one vector; gradients that are none count as 0.
TAPEDECK_EXPORT double global_norm(std::span<const Gradient> gradients);
/// Each g · limit / max(n, limit), where n is their global norm; all elements are NaN if n is not finite.
/// Pascanu et al. 2013.
TAPEDECK_EXPORT std::vector<Gradient> clip_by_global_norm(std::span<const Gradient> gradients, double limit);

namespace transforms {

/// Apply clip_by_value with [-limit, limit], clip_by_norm to each gradient, and clip_by_global_norm.
TAPEDECK_EXPORT GradientTransform clip_value(Scheduled limit);
TAPEDECK_EXPORT GradientTransform clip_norm(Scheduled limit);
TAPEDECK_EXPORT GradientTransform clip_global_norm(Scheduled limit);
/// g · factor.
TAPEDECK_EXPORT GradientTransform scale(Scheduled factor);

/// g + rate · v for the variables v for which `decays` returns true, or for all if it is empty: as if rate/2
/// · |v|² were part of the loss. For slices, only in their rows.
TAPEDECK_EXPORT GradientTransform weight_decay(Scheduled rate,
                                               std::function<bool(const Variable&)> decays = {});

/// g plus independent normal noise of this standard deviation, different in each step: Neelakantan et al.
/// 2015, whose deviation decreases as √(η / (1 + step)^0.55). The same key produces the same noise in the
/// same step. For slices, only in their rows.
TAPEDECK_EXPORT GradientTransform noise(random::Key key, Scheduled deviation);

}   // namespace transforms

}   // namespace tapedeck
