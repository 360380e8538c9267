// The derivative of softmax, for the ops that contain one.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

struct SoftmaxAttrs {
  int axis;
};

/// The derivative of y = softmax(x), along an axis counted from the end, applied to v. Its matrix is
/// symmetric, so it is both the vjp and the jvp.
Tensor softmax_derivative(const Tensor& y, const Tensor& v, int axis = -1);

}   // namespace tapedeck
