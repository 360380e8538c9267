// Reductions over axes. Axes are bits counted from the end: bit i is axis -1 - i. y has the other axes.
// Results do not depend on the number of threads.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// f32, f64, c64, c128, i32 and i64, whose overflow wraps around; f16 and bf16 are summed in f32 and rounded
/// once.
void sum(const Tensor& x, unsigned axes, Tensor& y);
/// The dtypes of sum, except f16 and bf16.
void prod(const Tensor& x, unsigned axes, Tensor& y);
/// f32, f64, f16, bf16, c64 and c128.
void mean(const Tensor& x, unsigned axes, Tensor& y);
/// The square root of the sum of squares. f32 and f64.
void euclidean_norm(const Tensor& x, unsigned axes, Tensor& y);
/// For f16, bf16, and every dtype that ops compute in except bool, c64 and c128. An empty reduction yields
/// the lowest or highest value of the dtype.
void max(const Tensor& x, unsigned axes, Tensor& y);
void min(const Tensor& x, unsigned axes, Tensor& y);
/// The share of each element of x in the gradient of its extreme: 1 / n if n elements equal the extreme and
/// it is one of them, otherwise 0. f32 and f64. best has the axes of x, with or without the reduced ones.
void share_of_extreme(const Tensor& x, const Tensor& best, unsigned axes, Tensor& share);
/// y is i64. Every dtype but bool, c64 and c128; `axis` counts from the end and is not empty.
void argmax(const Tensor& x, int axis, Tensor& y);
void argmin(const Tensor& x, int axis, Tensor& y);
/// For bool.
void any(const Tensor& x, unsigned axes, Tensor& y);
void all(const Tensor& x, unsigned axes, Tensor& y);

}   // namespace tapedeck::kernels
