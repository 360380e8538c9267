// Which arithmetic of groups a node is.
#pragma once
#include <span>

#include "program/group_code.h"

namespace tapedeck::program {

/// Of a node with one result; none where it is another kernel.
Arithmetic arithmetic_of(const Node& node);

/// op(a, b), where an operand is a place among x..., y of the pull, or one of these.
struct PullStep {
  static constexpr int kCotangent = -1, kLast = -2;   // dy; the result of the step before
  Arithmetic op;
  int a, b;
};
/// A gradient of a pull, as steps of which the last one gives it; it is dy where there are none.
using PullSteps = std::span<const PullStep>;
/// For each gradient of the vjp kernel; empty where it is not known.
std::span<const PullSteps> steps_of(const kernels::VjpKernel& k);

}   // namespace tapedeck::program
