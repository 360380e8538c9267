// What has a state on the host, such as an optimizer, in a function that is recorded.
#pragma once
#include <functional>

#include "core/trace.h"
#include "tapedeck/optimizer.h"

namespace tapedeck {

using PairsAction = std::function<void(std::span<const GradientAndVariable>)>;

/// Calls f with these tensors now, and in every replay with those that then have their places.
void act(std::vector<Tensor> x, std::function<void(std::span<const Tensor>)> f);
/// Calls f with these pairs now, and in every replay with the gradients that it then has. keeps: f may keep
/// tensors of these gradients.
void act(std::span<const GradientAndVariable> pairs, bool keeps, PairsAction f);

}   // namespace tapedeck
