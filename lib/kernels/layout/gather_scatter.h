// Gathers and scatters slices along one axis. Indices are already checked against the extent; a negative
// index means "no slice".
#pragma once
#include "kernels/layout/strided_view.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Batched indices: indices are [count, …]; each index set serves `inner` consecutive slabs before the axis,
/// then the next set follows, cyclically.
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
