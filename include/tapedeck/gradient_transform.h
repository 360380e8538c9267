// What may be done to gradients before a rule sees them: clipping, decay of weights, noise. Of gradients that
// are none these make none. Rows of slices that repeat are added up first, and other rows stay zero.
//
// Those of namespace transforms are for Optimizer::add_transform. Numbers may be schedules; they are read
// once a step. Limits below 0 throw ArgumentError, at once or, from a schedule, in the step.
#pragma once
#include "tapedeck/ops/random.h"
#include "tapedeck/optimizer.h"

namespace tapedeck {

/// Elements below low or above high become these. Throws ArgumentError unless low ≤ high.
TAPEDECK_EXPORT Gradient clip_by_value(const Gradient& g, double low, double high);
/// g · limit / max(|g|, limit), where |g| is the root of the sum of its squares. Throws ArgumentError for a
/// limit below 0 or NaN.
TAPEDECK_EXPORT Gradient clip_by_norm(const Gradient& g, double limit);
/// The norm of all gradients as of one vector; 0 for nones.
TAPEDECK_EXPORT double global_norm(std::span<const Gradient> gradients);
/// Each g · limit / max(n, limit), where n is their global norm; all NaN where that is not finite. Pascanu et
/// al. 2013.
TAPEDECK_EXPORT std::vector<Gradient> clip_by_global_norm(std::span<const Gradient> gradients, double limit);

namespace transforms {

/// clip_by_value to [-limit, limit], clip_by_norm of each gradient, and clip_by_global_norm.
TAPEDECK_EXPORT GradientTransform clip_value(Scheduled limit);
TAPEDECK_EXPORT GradientTransform clip_norm(Scheduled limit);
TAPEDECK_EXPORT GradientTransform clip_global_norm(Scheduled limit);
/// g · factor.
TAPEDECK_EXPORT GradientTransform scale(Scheduled factor);

/// g + rate · v for variables v for which `decays` is true, or all: as if rate/2 · |v|² were part of the
/// loss. Of slices, in their rows.
TAPEDECK_EXPORT GradientTransform weight_decay(Scheduled rate,
                                               std::function<bool(const Variable&)> decays = {});

/// g plus independent normal noise of this standard deviation, another one in each step: Neelakantan et al.
/// 2015, who let it fall as √(η / (1 + step)^0.55). The same key gives the same noise in the same step. Of
/// slices, in their rows.
TAPEDECK_EXPORT GradientTransform noise(random::Key key, Scheduled deviation);

}   // namespace transforms

}   // namespace tapedeck
