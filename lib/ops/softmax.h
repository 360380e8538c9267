// What the ops made of softmax share.
#pragma once
#include "tapedeck/operators.h"
#include "tapedeck/ops/reduce.h"

namespace tapedeck {

/// The derivative of a softmax along an axis, counted from the end, whose value is y, in direction v. It is symmetric: the vjp and the jvp.
inline Tensor softmax_derivative(const Tensor& y, const Tensor& v, int axis = -1) { return (v - sum(v * y, axis, true)) * y; }

}  // namespace tapedeck
