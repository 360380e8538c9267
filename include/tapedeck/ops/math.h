// Arithmetic and choices, element by element. Operands broadcast; mixed dtypes are promoted; numbers take the
// dtype beside them.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

// f32, f64 and the integers; add, sub, mul, neg, abs and square of c64 and c128, too.
TAPEDECK_EXPORT Tensor add(Operand a, Operand b);
TAPEDECK_EXPORT Tensor sub(Operand a, Operand b);
TAPEDECK_EXPORT Tensor mul(Operand a, Operand b);
TAPEDECK_EXPORT Tensor neg(Operand x);
/// Absolute value; its derivative at 0 is 0. Of c64 it is f32, of c128 f64.
TAPEDECK_EXPORT Tensor abs(Operand x);
/// -1, 0 or 1; its derivative is 0 everywhere.
TAPEDECK_EXPORT Tensor sign(Operand x);
TAPEDECK_EXPORT Tensor square(Operand x);
/// (a - b)².
TAPEDECK_EXPORT Tensor squared_difference(Operand a, Operand b);
/// Where a and b are equal, the gradient goes to a. NaN where either is.
TAPEDECK_EXPORT Tensor maximum(Operand a, Operand b);
TAPEDECK_EXPORT Tensor minimum(Operand a, Operand b);
/// minimum(maximum(x, low), high). The gradient goes to what was chosen: to x also at the bounds, elsewhere
/// to a bound.
TAPEDECK_EXPORT Tensor clip(Operand x, Operand low, Operand high);
/// The integer next to a / b downwards and towards 0; without gradients. Throws ArgumentError where an
/// integer is divided by 0.
TAPEDECK_EXPORT Tensor floor_div(Operand a, Operand b);
TAPEDECK_EXPORT Tensor truncate_div(Operand a, Operand b);
/// What is left of a after dividing by b downwards, with the sign of b; the gradients are 1 and -floor(a /
/// b).
TAPEDECK_EXPORT Tensor floor_mod(Operand a, Operand b);

// f32 and f64.
TAPEDECK_EXPORT Tensor div(Operand a, Operand b);
/// 1 / x.
TAPEDECK_EXPORT Tensor reciprocal(Operand x);
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
/// The vector product a × b along the last axis, which has 3 elements; the others broadcast.
TAPEDECK_EXPORT Tensor cross(Operand a, Operand b);

/// a where condition (bool) holds, else b.
TAPEDECK_EXPORT Tensor where(Operand condition, Operand a, Operand b);
/// x converted; from floating to integer towards zero, to bool as x != 0. A tensor of that dtype already is
/// returned with a new id.
TAPEDECK_EXPORT Tensor astype(const Tensor& x, DType dtype);
/// Sum of tensors of one shape and dtype, in one pass. Throws ArgumentError for an empty list.
TAPEDECK_EXPORT Tensor add_n(std::span<const Tensor> x);
/// The same, into the memory of a term that nobody else holds.
TAPEDECK_EXPORT Tensor add_n(std::vector<Tensor>&& x);
inline Tensor add_n(std::initializer_list<Tensor> x) {
  return add_n(std::span<const Tensor>(x.begin(), x.size()));
}

}   // namespace tapedeck
