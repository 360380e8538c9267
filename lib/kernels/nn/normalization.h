// Layer and batch normalization: rows, or columns, scaled to mean 0 and variance 1. f32 or f64. Results do
// not depend on the number of threads.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// y = (x - mean) / √(variance + epsilon) · scale + offset for each row; rows are the last axis of x.
void layer_norm(const Tensor& x, const Tensor& scale, const Tensor& offset, double epsilon, Tensor& y);
/// The gradients with respect to x, scale and offset, for the cotangent dy.
void layer_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& scale, double epsilon, Tensor& dx,
                         Tensor& dscale, Tensor& doffset);

/// Like layer_norm, for columns: a column is one entry of the last axis, over all rows, of which there must
/// be at least one. Also returns the means and variances of the columns.
void batch_norm(const Tensor& x, const Tensor& scale, const Tensor& offset, double epsilon, Tensor& y,
                Tensor& mean, Tensor& variance);
void batch_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& scale, double epsilon, Tensor& dx,
                         Tensor& dscale, Tensor& doffset);

}   // namespace tapedeck::kernels
