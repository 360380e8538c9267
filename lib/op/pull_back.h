// Calls the vjp of a rule, in backward passes and in transposed forward passes.
#pragma once
#include "tapedeck/op.h"

namespace tapedeck {

/// Calls c.op.rule.vjp with the conjugates of complex inputs and outputs. A rule written for real numbers, as
/// dy · f'(x), thereby computes dy · conj(f'(x)), which is the adjoint if conj(f(x)) = f(conj(x)).
void pull_back(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);

}   // namespace tapedeck
