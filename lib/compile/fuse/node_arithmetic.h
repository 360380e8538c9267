// Maps a node to the arithmetic of groups that computes it.
#pragma once
#include <span>

#include "compile/fuse/group_code.h"

namespace tapedeck::compiled {

/// The operation that computes a node with one result; none if there is none.
Arithmetic arithmetic_of(const OpNode& node);

/// op(a, b), where an operand is an index into x..., y of the vjp, or one of the constants below.
struct VjpStep {
  static constexpr int kCotangent = -1, kLast = -2;   // the cotangent; the result of the previous step
  Arithmetic op;
  int a, b;
};
/// The steps that compute one gradient of a vjp. The last step yields the gradient; without steps it is dy.
using VjpSteps = std::span<const VjpStep>;
/// The steps of each gradient of the vjp kernel; empty if the kernel has no such form.
std::span<const VjpSteps> steps_of(const kernels::VjpKernel& k);

}   // namespace tapedeck::compiled
