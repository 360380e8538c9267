// Elementwise arithmetic and selection. Operands broadcast; mixed dtypes are promoted; operand.h specifies
// the dtype of a number. Integers wrap around.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// a + b, a - b, a · b and -x, also written with operators (operators.h). All dtypes but bool.
TAPEDECK_EXPORT Tensor add(Operand a, Operand b);
TAPEDECK_EXPORT Tensor sub(Operand a, Operand b);
TAPEDECK_EXPORT Tensor mul(Operand a, Operand b);
TAPEDECK_EXPORT Tensor neg(Operand x);
/// Absolute value; its derivative at 0 is 0. All dtypes but bool. The result is f32 for c64 and f64 for c128.
TAPEDECK_EXPORT Tensor abs(Operand x);
/// -1, 0 or 1; its derivative is 0 everywhere. For complex x: x / |x|, which has a derivative, and 0, with a
/// gradient of 0, if x is 0. All dtypes but bool.
TAPEDECK_EXPORT Tensor sign(Operand x);
/// x². All dtypes but bool.
TAPEDECK_EXPORT Tensor square(Operand x);
/// (a - b)²; for complex operands |a - b|², in their dtype. All dtypes but bool.
TAPEDECK_EXPORT Tensor squared_difference(Operand a, Operand b);
/// The larger and the smaller of a and b; NaN if either is. Where a and b are equal, the gradient goes to a.
/// Floating-point and integer dtypes.
TAPEDECK_EXPORT Tensor maximum(Operand a, Operand b);
TAPEDECK_EXPORT Tensor minimum(Operand a, Operand b);
/// minimum(maximum(x, low), high). The gradient goes to the selected operand; where x equals a bound, to x.
/// Floating-point and integer dtypes.
TAPEDECK_EXPORT Tensor clip(Operand x, Operand low, Operand high);
/// a / b. Floating-point and complex dtypes; integers throw DTypeError: use astype, or floor_div
/// (ops/rounding.h).
TAPEDECK_EXPORT Tensor div(Operand a, Operand b);
/// 1 / x. Floating-point and complex dtypes.
TAPEDECK_EXPORT Tensor reciprocal(Operand x);
/// a where `condition` (bool) is true, else b. All dtypes. The operand that is not selected gets a gradient
/// of 0.
TAPEDECK_EXPORT Tensor where(Operand condition, Operand a, Operand b);
/// x converted to `dtype`; differentiable between floating-point and complex dtypes. Floating-point numbers
/// are truncated to integers: those out of range become the nearest integer of the dtype, NaN becomes 0.
/// Integers wrap around where the dtype is too narrow: 300 is 44 as u8. Complex numbers lose their imaginary
/// part, and conversion to bool is x != 0. A tensor that already has this dtype is returned with a new id.
TAPEDECK_EXPORT Tensor astype(const Tensor& x, DType dtype);
/// The sum of tensors of one shape and dtype, in one pass. All dtypes but bool. Throws ShapeError or
/// DTypeError if two differ, and ArgumentError for an empty list.
TAPEDECK_EXPORT Tensor add_n(std::span<const Tensor> x);
/// add_n, which may reuse the memory of an unshared term.
TAPEDECK_EXPORT Tensor add_n(std::vector<Tensor>&& x);
/// add_n of a list in braces.
inline Tensor add_n(std::initializer_list<Tensor> x) {
  return add_n(std::span<const Tensor>(x.begin(), x.size()));
}

}   // namespace tapedeck
