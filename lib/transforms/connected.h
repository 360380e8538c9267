// What branches and loops share: operands that get zeros where they are ignored, and checks of what functions
// return.
#pragma once
#include "tapedeck/function.h"

namespace tapedeck {

/// f(operands), recorded so that every operand has a gradient with respect to every result: zeros where there
/// is no path.
std::vector<Tensor> connected(std::span<const Tensor> operands, const Function& f);

/// A DTypeError where the dtypes differ, else a ShapeError.
[[noreturn]] inline void throw_changed(const Spec& is, const Spec& was, const std::string& text) {
  if (is.dtype != was.dtype) throw DTypeError(text);
  throw ShapeError(text);
}

}   // namespace tapedeck
