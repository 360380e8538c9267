// The derivative of softmax, for the ops that contain a softmax.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

struct SoftmaxAttrs {
  int axis;
};

/// The Jacobian of y = softmax(x), along an axis counted from the end, times v. It is symmetric, so this is
/// both the vjp and the jvp.
Tensor softmax_derivative(const Tensor& y, const Tensor& v, int axis = -1);

}   // namespace tapedeck
