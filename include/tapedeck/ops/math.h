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
// f32 and f64.
TAPEDECK_EXPORT Tensor div(Operand a, Operand b);
/// 1 / x.
TAPEDECK_EXPORT Tensor reciprocal(Operand x);
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
