// Elementwise rounding, integer division and remainders, and products and quotients that are 0 if the second
// operand is 0. Operands broadcast; mixed dtypes are promoted; operand.h specifies the dtype of a number.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// a / b rounded down (floor_div) or towards zero (truncate_div); no gradients. Floating-point and integer
/// dtypes. Throw ArgumentError for an integer division by 0.
TAPEDECK_EXPORT Tensor floor_div(Operand a, Operand b);
TAPEDECK_EXPORT Tensor truncate_div(Operand a, Operand b);
/// The remainder a - b · floor(a / b), which has the sign of b; the gradients are 1 and -floor(a / b).
/// Floating-point and integer dtypes. Throws ArgumentError for an integer division by 0.
TAPEDECK_EXPORT Tensor floor_mod(Operand a, Operand b);

/// x rounded down and up to an integer; no gradients. Floating-point dtypes.
TAPEDECK_EXPORT Tensor floor(Operand x);
TAPEDECK_EXPORT Tensor ceil(Operand x);
/// x rounded towards zero; no gradient. Floating-point dtypes.
TAPEDECK_EXPORT Tensor trunc(Operand x);
/// x rounded to the nearest integer, ties to even; no gradient. Two names for the same function.
/// Floating-point dtypes.
TAPEDECK_EXPORT Tensor round(Operand x);
TAPEDECK_EXPORT Tensor rint(Operand x);
/// a·b and a / b, but 0 where b is 0, for any a. There the gradient of a is 0, too, and for a / b also the
/// gradient of b. Floating-point and complex dtypes.
TAPEDECK_EXPORT Tensor mul_no_nan(Operand a, Operand b);
TAPEDECK_EXPORT Tensor div_no_nan(Operand a, Operand b);
/// The next representable number from a towards b; the gradient goes to a. Floating-point dtypes.
TAPEDECK_EXPORT Tensor nextafter(Operand a, Operand b);

}   // namespace tapedeck
