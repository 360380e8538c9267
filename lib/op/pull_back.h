// How the vjp of a rule is called. Backward passes and transposed forward passes go through here.
#pragma once
#include "tapedeck/op.h"

namespace tapedeck {

/// Calls c.op.rule.vjp, with the conjugates of complex inputs and outputs. A rule written for real numbers,
/// as dy · f'(x), so gives dy · conj(f'(x)), which is the adjoint wherever conj(f(x)) = f(conj(x)).
void pull_back(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);

}   // namespace tapedeck
