// unrolled: the program of several steps of a loop.
#pragma once
#include "compile/ir/program.h"

namespace tapedeck::compiled {

/// How an argument of a step changes from step to step.
struct StepArgument {
  enum class Is : std::uint8_t { carry, entry, same } is;
  std::size_t carry = 0;   // the output of the step before
};
/// Returns the program of n executions of p. An argument that is an entry becomes one with n entries along a
/// new first axis, taken from the last one to the first if `reverse`. Outputs: the first `carries` ones of
/// the last execution, then the others of each execution.
Program unrolled(const Program& p, std::span<const StepArgument> arguments, std::size_t carries,
                 std::int64_t n, bool reverse);

}   // namespace tapedeck::compiled
