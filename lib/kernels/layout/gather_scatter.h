// Slices along one axis, chosen by indices that are known to be below its extent; negative ones stand for no
// slice.
#pragma once
#include "kernels/layout/strided_view.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Where each of `count` parts of a tensor has indices of its own: indices are [count, …], and of the
/// elements before the axis `inner` in a row have the same ones, then the next part's come, in turns.
struct IndexBatches {
  std::int64_t count = 1, inner = 1;
};

/// y[b, k, a] = x[b, indices[k], a], or 0 for a negative index; x is seen as `around`.
void gather(const Tensor& x, const Tensor& indices, const AxisView& view, Tensor& y,
            const IndexBatches& batches = {});

enum class ScatterReduction { sum, difference, product, max, min, last };
/// y[b, indices[k], a] = fold(y[b, indices[k], a], x[b, k, a]) in the order of k; y is seen as `around`. Bool
/// has only `last`.
void scatter_reduce(ScatterReduction fold, const Tensor& x, const Tensor& indices, const AxisView& view,
                    Tensor& y, const IndexBatches& batches = {});
/// y = 0, then the same with sums.
void scatter_add(const Tensor& x, const Tensor& indices, const AxisView& view, Tensor& y,
                 const IndexBatches& batches = {});

}   // namespace tapedeck::kernels
