// Machine code for groups.
#pragma once
#include <optional>

#include "compile/fuse/group_code.h"

namespace tapedeck::compiled {

/// The same code with machine code in place of the calls that can be traced: one function for as many as
/// follow each other. None if there are no such calls, or if the system gives no memory for it.
std::optional<GroupCode> with_machine_code(const Program& p, const GroupCode& code);

}   // namespace tapedeck::compiled
