// Comparisons and logic: bool tensors of the broadcast shape, without gradients. Tensors have no operator==,
// since it would not return a bool, and no && and ||, since these would evaluate both operands: write
// equal(a, b) and logical_and(a, b).
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

TAPEDECK_EXPORT Tensor equal(Operand a, Operand b);
TAPEDECK_EXPORT Tensor not_equal(Operand a, Operand b);
TAPEDECK_EXPORT Tensor less(Operand a, Operand b);
TAPEDECK_EXPORT Tensor less_equal(Operand a, Operand b);
TAPEDECK_EXPORT Tensor greater(Operand a, Operand b);
TAPEDECK_EXPORT Tensor greater_equal(Operand a, Operand b);

/// For bool tensors; throw DTypeError for other dtypes.
TAPEDECK_EXPORT Tensor logical_and(Operand a, Operand b);
TAPEDECK_EXPORT Tensor logical_or(Operand a, Operand b);
TAPEDECK_EXPORT Tensor logical_not(const Tensor& x);

}   // namespace tapedeck
