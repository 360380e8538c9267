// Checks a program after it was recorded, and after each rewrite.
#pragma once
#include <optional>
#include <string>

#include "compile/ir/program.h"

namespace tapedeck::compiled {

/// What is wrong, or nothing: each value is defined once and before it is read, each access lies within its
/// value and has its dtype, and results have the specs that follow from their operands, as far as kinds of
/// nodes tell: what an op infers is checked by the op.
std::optional<std::string> verify(const Program& p);

}   // namespace tapedeck::compiled
