// Names of positions in a program: the user's scopes and the calls that led to an op.
#pragma once
#include <string>
#include <vector>

#include "op/observer.h"

namespace tapedeck {

/// The current position of this thread.
std::shared_ptr<const Origin> origin_here(std::uint64_t id);
/// "a/b" for the scopes a and b.
std::string scopes();
/// The functions outside the library that led to the position, innermost first, at most eight.
std::vector<std::string> callers(const Origin& origin);
/// Lines for a message: the scopes, then the calls outside the library.
std::string describe(const Origin& origin);

}   // namespace tapedeck
