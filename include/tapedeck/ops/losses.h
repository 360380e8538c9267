// Losses, for floating-point dtypes; others throw DTypeError.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// For each row of logits [..., classes], the negative log-probability of its label, log Σⱼ exp(logits[j]) -
/// logits[label], without overflow. labels are integers [...]; labels out of range throw ShapeError. The
/// gradient of the logits is softmax(logits), minus 1 at the label.
TAPEDECK_EXPORT Tensor sparse_softmax_cross_entropy(const Tensor& labels, const Tensor& logits);
/// For each row of logits [..., classes], minus the sum of labels times log-probabilities,
/// log_softmax(logits). labels have the shape and dtype of logits and have a gradient, too. The gradient of
/// the logits is softmax times the sum of the labels, minus the labels; TensorFlow omits that sum, which
/// differs for labels that do not sum to 1.
TAPEDECK_EXPORT Tensor softmax_cross_entropy(const Tensor& labels, const Tensor& logits);
/// For each element, the negative log-likelihood -z log s - (1 - z) log(1 - s) of labels z (0 to 1) under the
/// probability s = sigmoid(logits), without overflow. Both have gradients. Throws ShapeError unless labels
/// and logits have the same shape or one of them is a number. Only NumericsCheck (debug.h) checks the range
/// of labels.
TAPEDECK_EXPORT Tensor sigmoid_cross_entropy(Operand labels, Operand logits);
/// Half the sum of the squares of all elements, of rank 0; its gradient is x.
TAPEDECK_EXPORT Tensor l2_loss(const Tensor& x);
/// The mean of (labels - predictions)² along the last axis. Throws ShapeError unless they have the same
/// shape, of rank 1 or more, or one of them is a number.
TAPEDECK_EXPORT Tensor mean_squared_error(Operand labels, Operand predictions);
/// The mean along the last axis of e² / 2 if |e| ≤ delta, else delta · (|e| - delta / 2), where e = labels -
/// predictions (Huber 1964). The derivative with respect to an element is ±e, clipped to [-delta, delta],
/// divided by the extent of the axis. Throws ShapeError as mean_squared_error does, and ArgumentError unless
/// delta is positive.
TAPEDECK_EXPORT Tensor huber_loss(Operand labels, Operand predictions, double delta = 1);

}   // namespace tapedeck
