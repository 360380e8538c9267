// Reductions over axes. Axes are bits counted from the end: bit i is axis -1 - i. y has the other axes.
// Results do not depend on the number of threads.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// f32, f64, c64, c128, i32 and i64, whose overflow wraps around; f16 and bf16 are summed in f32 and rounded
/// once.
void sum(const Tensor& x, unsigned axes, Tensor& y);
/// The same without f16 and bf16.
void prod(const Tensor& x, unsigned axes, Tensor& y);
/// f32, f64, f16, bf16, c64 and c128.
void mean(const Tensor& x, unsigned axes, Tensor& y);
/// The square root of the sum of squares. f32 and f64.
void euclidean_norm(const Tensor& x, unsigned axes, Tensor& y);
/// Every dtype that ops compute in but bool, c64 and c128, and f16 and bf16. An empty reduction gives the
/// dtype's lowest or highest value.
void max(const Tensor& x, unsigned axes, Tensor& y);
void min(const Tensor& x, unsigned axes, Tensor& y);
/// What each element of x gets of the gradient of its extreme: 1 / n for n elements that equal it, else 0.
/// f32 and f64; best has x's axes, or those without the ones that are reduced.
void share_of_extreme(const Tensor& x, const Tensor& best, unsigned axes, Tensor& share);
/// y is i64. Every dtype but bool, c64 and c128; `axis` counts from the end and is not empty.
void argmax(const Tensor& x, int axis, Tensor& y);
void argmin(const Tensor& x, int axis, Tensor& y);
/// bool.
void any(const Tensor& x, unsigned axes, Tensor& y);
void all(const Tensor& x, unsigned axes, Tensor& y);

}   // namespace tapedeck::kernels
