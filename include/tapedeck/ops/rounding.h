// Rounding, whole quotients and remainders, and quotients that are 0 for a divisor of 0, element by element.
// Operands broadcast; mixed dtypes are promoted; numbers take the dtype beside them.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

// f32, f64 and the integers.
/// The integer next to a / b downwards and towards 0; without gradients. Throws ArgumentError where an
/// integer is divided by 0.
TAPEDECK_EXPORT Tensor floor_div(Operand a, Operand b);
TAPEDECK_EXPORT Tensor truncate_div(Operand a, Operand b);
/// What is left of a after dividing by b downwards, with the sign of b; the gradients are 1 and -floor(a /
/// b).
TAPEDECK_EXPORT Tensor floor_mod(Operand a, Operand b);

// f32 and f64.
/// The next integers below and above x; without gradients.
TAPEDECK_EXPORT Tensor floor(Operand x);
TAPEDECK_EXPORT Tensor ceil(Operand x);
/// The next integer towards 0; without gradient.
TAPEDECK_EXPORT Tensor trunc(Operand x);
/// The nearest integer, the even one where two are as near; without gradients. One function under two names.
TAPEDECK_EXPORT Tensor round(Operand x);
TAPEDECK_EXPORT Tensor rint(Operand x);
/// a·b and a / b, which are 0 wherever b is 0, whatever a is; so are the gradients in a, and of a / b also in
/// b.
TAPEDECK_EXPORT Tensor mul_no_nan(Operand a, Operand b);
TAPEDECK_EXPORT Tensor div_no_nan(Operand a, Operand b);
/// The number next to a in the direction of b; its gradient is a's.
TAPEDECK_EXPORT Tensor nextafter(Operand a, Operand b);

}   // namespace tapedeck
