// Comparisons: bool tensors of the broadcast shape, without gradients. There is no operator== on tensors: write equal(a, b).
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

TAPEDECK_EXPORT Tensor equal(Operand a, Operand b);
TAPEDECK_EXPORT Tensor not_equal(Operand a, Operand b);
TAPEDECK_EXPORT Tensor less(Operand a, Operand b);
TAPEDECK_EXPORT Tensor less_equal(Operand a, Operand b);
TAPEDECK_EXPORT Tensor greater(Operand a, Operand b);
TAPEDECK_EXPORT Tensor greater_equal(Operand a, Operand b);

}  // namespace tapedeck
