// Gathers and scatters rows along one axis. A tensor is [before, extent, after] around the axis (AxisView):
// it has `before` slabs of `extent` rows of `after` elements. Indices are already checked against the extent;
// a negative index means "no row".
#pragma once
#include "kernels/layout/strided_view.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Batched indices: indices are [count, …], `count` index sets. Each set serves `inner` consecutive slabs,
/// the next set the next `inner` slabs, and so on, cyclically.
struct IndexBatches {
  std::int64_t count = 1, inner = 1;
};

/// y[b, k, a] = x[b, indices[k], a], or 0 for a negative index. `view` describes x.
void gather(const Tensor& x, const Tensor& indices, const AxisView& view, Tensor& y,
            const IndexBatches& batches = {});

enum class ScatterReduction { sum, difference, product, max, min, last };
/// y[b, indices[k], a] = reduce(y[b, indices[k], a], x[b, k, a]) in the order of k. `view` describes y. Bool
/// supports only `last`.
void scatter_reduce(ScatterReduction fold, const Tensor& x, const Tensor& indices, const AxisView& view,
                    Tensor& y, const IndexBatches& batches = {});
/// y = 0, then y[b, indices[k], a] += x[b, k, a] in the order of k.
void scatter_add(const Tensor& x, const Tensor& indices, const AxisView& view, Tensor& y,
                 const IndexBatches& batches = {});

}   // namespace tapedeck::kernels
