// Softmax of rows, where a row is the last axis. In: f32 or f64. Out: y; NaN where a row has one, or only -inf.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

void softmax(const Tensor& x, Tensor& y);
void log_softmax(const Tensor& x, Tensor& y);
/// y[i] = -log_softmax(logits)[i, labels[i]]. labels: i32 or i64, in range.
void cross_entropy(const Tensor& labels, const Tensor& logits, Tensor& y);

}  // namespace tapedeck::kernels
