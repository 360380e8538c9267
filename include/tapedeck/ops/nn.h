// Neural networks. f32 and f64.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// x where it is positive, else 0; the derivative at 0 is 0.
TAPEDECK_EXPORT Tensor relu(Operand x);
/// exp(x) over its sum along axis, computed without overflow.
TAPEDECK_EXPORT Tensor softmax(const Tensor& x, int axis = -1);
/// x minus the logarithm of the sum of exp(x) along axis, computed without overflow.
TAPEDECK_EXPORT Tensor log_softmax(const Tensor& x, int axis = -1);
/// For each row of logits [..., classes], minus the log-probability of its label. labels: i32 or i64 [...], checked.
TAPEDECK_EXPORT Tensor sparse_softmax_cross_entropy(const Tensor& labels, const Tensor& logits);

}  // namespace tapedeck
