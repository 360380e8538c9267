// Arithmetic and ordering operators. There is no a == b, since it would not return a bool: write equal(a, b).
#pragma once
#include "tapedeck/ops/compare.h"
#include "tapedeck/ops/math.h"

namespace tapedeck {

/// Elementwise, of operands that broadcast: as neg, add, sub, mul and div of ops/math.h, and, with a bool
/// result, as less, less_equal, greater and greater_equal of ops/compare.h.
inline Tensor operator-(Operand x) { return neg(x); }
inline Tensor operator+(Operand a, Operand b) { return add(a, b); }
inline Tensor operator-(Operand a, Operand b) { return sub(a, b); }
inline Tensor operator*(Operand a, Operand b) { return mul(a, b); }
inline Tensor operator/(Operand a, Operand b) { return div(a, b); }
inline Tensor operator<(Operand a, Operand b) { return less(a, b); }
inline Tensor operator<=(Operand a, Operand b) { return less_equal(a, b); }
inline Tensor operator>(Operand a, Operand b) { return greater(a, b); }
inline Tensor operator>=(Operand a, Operand b) { return greater_equal(a, b); }

}   // namespace tapedeck
