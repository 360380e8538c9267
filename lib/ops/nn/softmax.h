// What the ops made of softmax share.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

struct SoftmaxAttrs {
  int axis;
};

/// The derivative of a softmax along an axis, counted from the end, whose value is y, in direction v. It is
/// symmetric: the vjp and the jvp.
Tensor softmax_derivative(const Tensor& y, const Tensor& v, int axis = -1);

}   // namespace tapedeck
