// Losses. f32 and f64.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// For each row of logits [..., classes], minus the log-probability of its label. labels: i32 or i64 [...],
/// checked.
TAPEDECK_EXPORT Tensor sparse_softmax_cross_entropy(const Tensor& labels, const Tensor& logits);
/// For each row of logits [..., classes], minus the sum of labels, of the same shape and dtype, times its
/// log-probabilities. The labels have a gradient too. That of the logits is softmax times the sum of the
/// labels, minus the labels; for labels that do not sum to 1, TensorFlow leaves that sum out.
TAPEDECK_EXPORT Tensor softmax_cross_entropy(const Tensor& labels, const Tensor& logits);
/// For each element, minus log-probability of labels (0 to 1) under the probability sigmoid(logits), without
/// overflow. Both have a gradient.
TAPEDECK_EXPORT Tensor sigmoid_cross_entropy(Operand labels, Operand logits);
/// Half the sum of all elements' squares.
TAPEDECK_EXPORT Tensor l2_loss(const Tensor& x);
/// The mean along the last axis of (labels - predictions)². Throws ShapeError where they do not broadcast to
/// rank 1 or more.
TAPEDECK_EXPORT Tensor mean_squared_error(Operand labels, Operand predictions);
/// The mean along the last axis of e² / 2 where the error |e| is at most delta, else delta · (|e| - delta /
/// 2) (Huber 1964). Throws ShapeError as mean_squared_error, ArgumentError unless delta is positive.
TAPEDECK_EXPORT Tensor huber_loss(Operand labels, Operand predictions, double delta = 1);

}   // namespace tapedeck
