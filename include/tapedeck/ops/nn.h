// Neural networks. f32 and f64.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// x where it is positive, else 0; the derivative at 0 is 0.
TAPEDECK_EXPORT Tensor relu(Operand x);
/// x where it is positive, else alpha · x; the derivative at 0 is alpha, which may be a tensor too.
TAPEDECK_EXPORT Tensor leaky_relu(Operand x, Operand alpha = 0.2);
/// log(1 + exp(x)), computed without overflow.
TAPEDECK_EXPORT Tensor softplus(Operand x);
/// x plus a bias [n] along its last axis. Throws ShapeError for any other bias.
TAPEDECK_EXPORT Tensor bias_add(const Tensor& x, const Tensor& bias);
/// exp(x) over its sum along axis, computed without overflow.
TAPEDECK_EXPORT Tensor softmax(const Tensor& x, int axis = -1);
/// x minus the logarithm of the sum of exp(x) along axis, computed without overflow.
TAPEDECK_EXPORT Tensor log_softmax(const Tensor& x, int axis = -1);
/// For each row of logits [..., classes], minus the log-probability of its label. labels: i32 or i64 [...], checked.
TAPEDECK_EXPORT Tensor sparse_softmax_cross_entropy(const Tensor& labels, const Tensor& logits);
/// For each row of logits [..., classes], minus the sum of labels, of the same shape and dtype, times its log-probabilities. The
/// labels have a gradient too. That of the logits is softmax times the sum of the labels, minus the labels; for labels that do
/// not sum to 1, TensorFlow leaves that sum out.
TAPEDECK_EXPORT Tensor softmax_cross_entropy(const Tensor& labels, const Tensor& logits);

}  // namespace tapedeck
