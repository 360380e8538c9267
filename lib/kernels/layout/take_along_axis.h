// Single elements along an axis, each chosen by an index of its own.
#pragma once
#include "kernels/layout/strided_view.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

// One tensor is seen as `around` an axis, indices and the other one have `count` entries in its place. The
// tensors may have more elements before the axis than indices, which are then used again and again.

/// y[b, k, a] = x[b, indices[b, k, a], a]. Returns the first place in indices of one that is out of range, or
/// -1.
std::int64_t take_along_axis(const Tensor& x, const Tensor& indices, const AxisView& view, std::int64_t count,
                             Tensor& y);
/// y = 0, then y[b, indices[b, k, a], a] += x[b, k, a] in the order of k; y is seen as `around`. Not for
/// bool. Returns the same.
std::int64_t add_along_axis(const Tensor& x, const Tensor& indices, const AxisView& view, std::int64_t count,
                            Tensor& y);

}   // namespace tapedeck::kernels
