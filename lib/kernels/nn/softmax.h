// Softmax of rows, where a row is the last axis. In: f32 or f64. Out: y; NaN where a row has one, or only
// -inf.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Along any axis, counted from the end.
void softmax(const Tensor& x, int axis, Tensor& y);
void log_softmax(const Tensor& x, int axis, Tensor& y);
/// y[i] = (v[i] - Σⱼ p[j] v[j]) p[i] along an axis of p, counted from the end. v may have more axes in front,
/// p is then used again and again.
void softmax_derivative(const Tensor& p, const Tensor& v, int axis, Tensor& y);
/// y[i] = log Σⱼ exp(x[i, j]); -inf for a row of nothing or of -inf. Writes the softmax too, unless it is
/// null, with zeros for such rows.
void logsumexp(const Tensor& x, Tensor& y, Tensor* softmax);
/// y[i] = -Σⱼ labels[i, j] log_softmax(logits)[i, j].
void dense_cross_entropy(const Tensor& labels, const Tensor& logits, Tensor& y);
/// y[i] = -log_softmax(logits)[i, labels[i]]. labels: i32 or i64, in range.
void cross_entropy(const Tensor& labels, const Tensor& logits, Tensor& y);

}   // namespace tapedeck::kernels
