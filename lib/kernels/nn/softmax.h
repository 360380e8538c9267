// Softmax, log-sum-exp and cross entropy, f32 or f64. Rows are the last axis. Results are NaN for rows with a
// NaN and, except in logsumexp, for rows of only -inf. They do not depend on the number of threads.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Softmax along any axis, counted from the end.
void softmax(const Tensor& x, int axis, Tensor& y);
void log_softmax(const Tensor& x, int axis, Tensor& y);
/// y[i] = (v[i] - Σⱼ p[j] v[j]) p[i] along an axis of p, counted from the end. v may have additional leading
/// axes, over which p is broadcast.
void softmax_derivative(const Tensor& p, const Tensor& v, int axis, Tensor& y);
/// y[i] = log Σⱼ exp(x[i, j]); -inf for an empty row or one of only -inf. Also writes the softmax unless it
/// is null, with zeros for such rows.
void logsumexp(const Tensor& x, Tensor& y, Tensor* softmax);
/// y[i] = -Σⱼ labels[i, j] log_softmax(logits)[i, j].
void dense_cross_entropy(const Tensor& labels, const Tensor& logits, Tensor& y);
/// y[i] = -log_softmax(logits)[i, labels[i]]. labels: integers, in range.
void cross_entropy(const Tensor& labels, const Tensor& logits, Tensor& y);

/// For matrices [rows, n] of float or double. softmax_rows computes the softmax of each row in place;
/// softmax_derivative_rows sets v = (v - Σ p v) p for each row of v.
template <class T> void softmax_rows(T* x, std::int64_t rows, std::int64_t n);
template <class T> void softmax_derivative_rows(const T* p, std::int64_t rows, std::int64_t n, T* v);

}   // namespace tapedeck::kernels
