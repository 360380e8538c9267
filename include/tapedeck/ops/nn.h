// Neural networks. f32 and f64.
#pragma once
#include "tapedeck/operand.h"
#include "tapedeck/ops/random.h"

namespace tapedeck {

/// x where it is positive, else 0; the derivative at 0 is 0.
TAPEDECK_EXPORT Tensor relu(Operand x);
/// x where it is positive, else alpha · x; the derivative at 0 is alpha, which may be a tensor too.
TAPEDECK_EXPORT Tensor leaky_relu(Operand x, Operand alpha = 0.2);
/// x where it is between 0 and 6, else the nearer of them; the derivative at 0 and 6 is 0.
TAPEDECK_EXPORT Tensor relu6(Operand x);
/// x where it is positive, else exp(x) - 1 (Clevert, Unterthiner and Hochreiter 2015).
TAPEDECK_EXPORT Tensor elu(Operand x);
/// λ x where x is positive, else λ α (exp(x) - 1), with the constants that keep mean 0 and variance 1
/// (Klambauer et al. 2017).
TAPEDECK_EXPORT Tensor selu(Operand x);
/// x times the probability that a standard normal number is below x (Hendrycks and Gimpel 2016), or their
/// approximation of it with tanh.
enum class Gelu : std::uint8_t { exact, tanh };
TAPEDECK_EXPORT Tensor gelu(Operand x, Gelu form = Gelu::exact);
/// x · sigmoid(beta x), also known as swish; beta may be a tensor, and has a gradient.
TAPEDECK_EXPORT Tensor silu(Operand x, Operand beta = 1.0);
/// x / (1 + |x|).
TAPEDECK_EXPORT Tensor softsign(Operand x);
/// log(1 + exp(x)), computed without overflow.
TAPEDECK_EXPORT Tensor softplus(Operand x);
/// x plus a bias [n] along its last axis. Throws ShapeError for any other bias.
TAPEDECK_EXPORT Tensor bias_add(const Tensor& x, const Tensor& bias);
/// exp(x) over its sum along axis, computed without overflow.
TAPEDECK_EXPORT Tensor softmax(const Tensor& x, int axis = -1);
/// x minus the logarithm of the sum of exp(x) along axis, computed without overflow.
TAPEDECK_EXPORT Tensor log_softmax(const Tensor& x, int axis = -1);
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
/// Zero for a share `rate` of the elements, which the key chooses, and x / (1 - rate) for the others. Throws
/// ArgumentError unless rate is at least 0 and less than 1.
TAPEDECK_EXPORT Tensor dropout(const Tensor& x, double rate, random::Key key);

}   // namespace tapedeck
