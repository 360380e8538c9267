// A rule as one action of a function that is recorded.
#pragma once
#include <functional>

#include "tapedeck/op.h"

namespace tapedeck {

/// A rule that is given these cotangents or tangents and returns gradients or tangents, some undefined.
using RuleAction = std::function<std::vector<Tensor>(const Call& c, std::span<const Tensor> given)>;
/// Adds it to the recording: for what c and `given` say, it has returned `results`.
void record_rule(const Call& c, std::span<const Tensor> given, std::span<const Tensor> results,
                 RuleAction rule);

}   // namespace tapedeck
