// Checks a program after it was recorded, and after each rewrite.
#pragma once
#include <optional>
#include <string>

#include "compile/ir/program.h"

namespace tapedeck::compiled {

/// What is wrong, or nothing: each value is defined once and before it is read, each access lies within its
/// value and has its dtype, and the results of nodes have the specs that follow from their operands.
std::optional<std::string> verify(const Program& p);

}   // namespace tapedeck::compiled
