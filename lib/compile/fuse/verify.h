// Checks the code of a group against the nodes that it stands for.
#pragma once
#include <optional>
#include <string>

#include "compile/fuse/group_code.h"

namespace tapedeck::compiled {

/// What is wrong, or nothing: the instructions are followed with terms in the place of numbers, and each
/// value that the group writes must get the term that its node stands for, and no other.
std::optional<std::string> verify(const Program& p, const Passes& passes, const Step& step,
                                  const GroupCode& code);

}   // namespace tapedeck::compiled
