// Rows, or columns, with mean 0 and variance 1. In: tensors of one dtype, f32 or f64. Results do not depend
// on the number of threads.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// y = (x - mean) / √(variance + epsilon) · scale + offset for every row, the last axis of x.
void layer_norm(const Tensor& x, const Tensor& scale, const Tensor& offset, double epsilon, Tensor& y);
/// The gradients of its three inputs, for that of y.
void layer_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& scale, double epsilon, Tensor& dx,
                         Tensor& dscale, Tensor& doffset);

/// The same for the columns of x, which are its entries along the last axis: there is one row at least.
/// `mean` and `variance` are those of the columns.
void batch_norm(const Tensor& x, const Tensor& scale, const Tensor& offset, double epsilon, Tensor& y,
                Tensor& mean, Tensor& variance);
void batch_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& scale, double epsilon, Tensor& dx,
                         Tensor& dscale, Tensor& doffset);

}   // namespace tapedeck::kernels
