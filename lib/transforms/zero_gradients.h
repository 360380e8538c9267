// Shared by branches and loops: zero gradients for operands that are not used, and checks of the specs that
// functions return.
#pragma once
#include "tapedeck/function.h"

namespace tapedeck {

/// f(operands), recorded so that every operand has a gradient with respect to every result: zeros if there is
/// no path.
std::vector<Tensor> connected(std::span<const Tensor> operands, const Function& f);

/// Throws DTypeError if the dtypes differ, else ShapeError.
[[noreturn]] inline void throw_changed(const Spec& is, const Spec& was, const std::string& text) {
  if (is.dtype != was.dtype) throw DTypeError(text);
  throw ShapeError(text);
}

}   // namespace tapedeck
