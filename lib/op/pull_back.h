// How the vjp of a rule is called.
#pragma once
#include "tapedeck/op.h"

namespace tapedeck {

/// c.op.rule.vjp. Of complex inputs and outputs the rule sees the conjugates: what it makes as dy · f'(x), as
/// if all were real, is then dy · conj(f'(x)), the adjoint, for every f with conj(f(x)) = f(conj(x)).
void pull_back(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);

}   // namespace tapedeck
