// Arithmetic and ordering operators; operators that update variables are in variable.h. There is no a == b,
// since it would not return a bool: write equal(a, b).
#pragma once
#include "tapedeck/ops/compare.h"
#include "tapedeck/ops/math.h"

namespace tapedeck {

/// Elementwise operators, whose operands broadcast: the same as neg, add, sub, mul and div of ops/math.h and,
/// with a bool result, as less, less_equal, greater and greater_equal of ops/compare.h.
inline Tensor operator-(Operand x) { return neg(x); }
inline Tensor operator+(Operand a, Operand b) { return add(a, b); }
inline Tensor operator-(Operand a, Operand b) { return sub(a, b); }
inline Tensor operator*(Operand a, Operand b) { return mul(a, b); }
inline Tensor operator/(Operand a, Operand b) { return div(a, b); }
/// x += y is x = x + y: x refers to a new value, of the dtype and shape of the sum, and other handles keep
/// the old one. May reuse the memory of x. If it throws, x is unchanged.
inline Tensor& operator+=(Tensor& x, Operand y) { return x = detail::updated(x, y, add); }
inline Tensor& operator-=(Tensor& x, Operand y) { return x = detail::updated(x, y, sub); }
inline Tensor& operator*=(Tensor& x, Operand y) { return x = detail::updated(x, y, mul); }
inline Tensor& operator/=(Tensor& x, Operand y) { return x = detail::updated(x, y, div); }
inline Tensor operator<(Operand a, Operand b) { return less(a, b); }
inline Tensor operator<=(Operand a, Operand b) { return less_equal(a, b); }
inline Tensor operator>(Operand a, Operand b) { return greater(a, b); }
inline Tensor operator>=(Operand a, Operand b) { return greater_equal(a, b); }

/// Rejects a comparison at compile time, with a message that says what to write.
template <std::same_as<Tensor> A, class B>
requires std::convertible_to<const B&, Operand>
bool operator==(const A&, const B&) {
  static_assert(sizeof(A) == 0,
                "a == b of tensors is not defined: equal(a, b) compares elements, all(equal(a, b)).item() "
                "tells whether all are equal, a.id() == b.id() whether a and b are one tensor");
  return false;
}

}   // namespace tapedeck
