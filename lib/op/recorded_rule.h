// Records a rule as one action of a compiled function.
#pragma once
#include <functional>

#include "tapedeck/op.h"

namespace tapedeck {

/// Runs a rule on the given cotangents or tangents, and returns gradients or tangents, of which some may be
/// undefined.
using RuleAction = std::function<std::vector<Tensor>(const Call& c, std::span<const Tensor> given)>;
/// Adds `rule` to the recording as an action; called with c and `given`, it has returned `results`.
void record_rule(const Call& c, std::span<const Tensor> given, std::span<const Tensor> results,
                 RuleAction rule);

}   // namespace tapedeck
