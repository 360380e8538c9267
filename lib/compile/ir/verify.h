// Verifies a program after it was recorded, and after each rewrite.
#pragma once
#include <optional>
#include <string>

#include "compile/ir/program.h"

namespace tapedeck::compiled {

/// Returns the first broken rule, or nothing. The rules: each value is defined once, before it is read; each
/// access lies within its value and has its dtype; results have the specs that follow from their operands, as
/// far as the kind of node determines them. The specs that an op infers are checked by the op.
std::optional<std::string> verify(const Program& p);

}   // namespace tapedeck::compiled
