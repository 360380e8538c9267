// Which arithmetic of groups a node is.
#pragma once
#include <span>

#include "compile/fuse/group_code.h"

namespace tapedeck::compiled {

/// Of a node with one result; none where it is another kernel.
Arithmetic arithmetic_of(const OpNode& node);

/// op(a, b), where an operand is a place among x..., y of the vjp, or one of these.
struct VjpStep {
  static constexpr int kCotangent = -1, kLast = -2;   // dy; the result of the step before
  Arithmetic op;
  int a, b;
};
/// A gradient of a vjp, as steps of which the last one gives it; it is dy where there are none.
using VjpSteps = std::span<const VjpStep>;
/// For each gradient of the vjp kernel; empty where it is not known.
std::span<const VjpSteps> steps_of(const kernels::VjpKernel& k);

}   // namespace tapedeck::compiled
