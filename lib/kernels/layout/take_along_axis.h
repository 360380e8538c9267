// Gathers and scatter-adds single elements along an axis, each by a separate index.
#pragma once
#include "kernels/layout/strided_view.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

// `view` describes the tensor that is indexed: `before` slabs of `extent` rows of `after` elements. Indices
// and the other tensor have `count` rows per slab. If the tensors have more slabs than the indices, the
// indices repeat.

/// y[b, k, a] = x[b, indices[b, k, a], a]. Returns the position of the first index out of range, or -1.
std::int64_t take_along_axis(const Tensor& x, const Tensor& indices, const AxisView& view, std::int64_t count,
                             Tensor& y);
/// y = 0, then y[b, indices[b, k, a], a] += x[b, k, a] in the order of k; `view` describes y. Not for bool.
/// Returns as above.
std::int64_t add_along_axis(const Tensor& x, const Tensor& indices, const AxisView& view, std::int64_t count,
                            Tensor& y);

}   // namespace tapedeck::kernels
