// Helpers shared by branches and loops: zero gradients for unused operands, and checks of the specs that
// functions return.
#pragma once
#include "tapedeck/function.h"

namespace tapedeck {

/// Returns f(operands), recorded so that every result has a gradient with respect to every operand, which is
/// zeros if there is no path.
std::vector<Tensor> connected(std::span<const Tensor> operands, const Function& f);

/// Throws DTypeError if the dtypes differ, else ShapeError.
[[noreturn]] inline void throw_changed(const Spec& is, const Spec& was, const std::string& text) {
  if (is.dtype != was.dtype) throw DTypeError(text);
  throw ShapeError(text);
}

}   // namespace tapedeck
