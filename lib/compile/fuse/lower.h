// Machine code for groups.
#pragma once
#include <optional>

#include "compile/fuse/group_code.h"

namespace tapedeck::compiled {

/// The same code with machine code in place of arithmetic and of calls: one function for as many instructions
/// as can be traced and follow each other. None if nothing can be traced, or no machine code be made.
std::optional<GroupCode> with_machine_code(const Program& p, const GroupCode& code);

}   // namespace tapedeck::compiled
