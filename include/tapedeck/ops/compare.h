// Comparisons and logic: bool tensors of the broadcast shape, without gradients. Mixed dtypes are promoted;
// shapes that do not broadcast throw ShapeError. Tensors have no operator==, since it would not return a
// bool, and no && and ||, since these would evaluate both operands: write equal(a, b) and logical_and(a, b).
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// a = b and a ≠ b, element by element, for any dtype. NaN equals nothing, not even itself.
TAPEDECK_EXPORT Tensor equal(Operand a, Operand b);
TAPEDECK_EXPORT Tensor not_equal(Operand a, Operand b);
/// a < b, a ≤ b, a > b and a ≥ b; false if either is NaN. Also the operators `<`, `<=`, `>` and `>=`. Throw
/// DTypeError for complex numbers.
TAPEDECK_EXPORT Tensor less(Operand a, Operand b);
TAPEDECK_EXPORT Tensor less_equal(Operand a, Operand b);
TAPEDECK_EXPORT Tensor greater(Operand a, Operand b);
TAPEDECK_EXPORT Tensor greater_equal(Operand a, Operand b);

/// a and b, a or b, not x, for bool tensors; throw DTypeError for other dtypes. Both operands are evaluated.
TAPEDECK_EXPORT Tensor logical_and(Operand a, Operand b);
TAPEDECK_EXPORT Tensor logical_or(Operand a, Operand b);
TAPEDECK_EXPORT Tensor logical_not(const Tensor& x);

}   // namespace tapedeck
