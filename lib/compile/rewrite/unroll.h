// Programs of a loop: of a step with the condition of the next one, and of several steps.
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

/// Returns p with the outputs of `next` after its own. arguments: what the arguments of `next` are in p; an
/// access that reads nothing for those that are not read. Precondition: `next` has no keys.
Program followed_by(Program p, const Program& next, std::span<const Access> arguments);

/// Whether all nodes are such that running them with any numbers does nothing but take time: they compute
/// with floating-point numbers, compare, choose, move elements, or count.
bool is_harmless(const Program& p);

}   // namespace tapedeck::compiled
