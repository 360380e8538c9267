// Verifies the code of a group against its nodes.
#pragma once
#include <optional>
#include <string>

#include "compile/fuse/group_code.h"

namespace tapedeck::compiled {

/// Returns the first difference, or nothing. The instructions are executed symbolically, on terms instead of
/// numbers; each value that the group writes must get exactly the term that its node computes.
std::optional<std::string> verify(const Program& p, const Passes& passes, const Step& step,
                                  const GroupCode& code);

}   // namespace tapedeck::compiled
