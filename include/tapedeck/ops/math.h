// Elementwise mathematics. Operands broadcast; mixed dtypes are promoted; numbers take the dtype beside them.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

// f32, f64 and the integers.
TAPEDECK_EXPORT Tensor add(Operand a, Operand b);
TAPEDECK_EXPORT Tensor sub(Operand a, Operand b);
TAPEDECK_EXPORT Tensor mul(Operand a, Operand b);
TAPEDECK_EXPORT Tensor neg(Operand x);
/// Absolute value; its derivative at 0 is 0.
TAPEDECK_EXPORT Tensor abs(Operand x);
TAPEDECK_EXPORT Tensor square(Operand x);
/// Where a and b are equal, the gradient goes to a. NaN where either is.
TAPEDECK_EXPORT Tensor maximum(Operand a, Operand b);
TAPEDECK_EXPORT Tensor minimum(Operand a, Operand b);

// f32 and f64.
TAPEDECK_EXPORT Tensor div(Operand a, Operand b);
TAPEDECK_EXPORT Tensor sqrt(Operand x);
TAPEDECK_EXPORT Tensor exp(Operand x);
TAPEDECK_EXPORT Tensor log(Operand x);
TAPEDECK_EXPORT Tensor tanh(Operand x);
/// 1 / (1 + exp(-x)).
TAPEDECK_EXPORT Tensor sigmoid(Operand x);
/// a to the power b. The derivative in b is 0 where a is not positive.
TAPEDECK_EXPORT Tensor pow(Operand a, Operand b);

/// a where condition (bool) holds, else b.
TAPEDECK_EXPORT Tensor where(Operand condition, Operand a, Operand b);
/// x converted; from floating to integer towards zero, to bool as x != 0. A tensor of that dtype already is returned with a new id.
TAPEDECK_EXPORT Tensor astype(const Tensor& x, DType dtype);
/// Sum of tensors of one shape and dtype, in one pass. Throws ArgumentError for an empty list.
TAPEDECK_EXPORT Tensor add_n(std::span<const Tensor> x);
/// The same, into the memory of a term that nobody else holds.
TAPEDECK_EXPORT Tensor add_n(std::vector<Tensor>&& x);
inline Tensor add_n(std::initializer_list<Tensor> x) { return add_n(std::span<const Tensor>(x.begin(), x.size())); }

}  // namespace tapedeck
