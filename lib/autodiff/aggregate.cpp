// Sums of gradient terms. In: terms of one tensor, dense or sliced. Out: one gradient, in the buffer of a term that nobody
// else holds if there is one. Made of ops, so that an outer tape records them.
#include "autodiff/imperative_grad.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Gradient aggregate(std::span<Gradient> terms) {
  bool all_slices = true;
  for (const Gradient& g : terms) all_slices &= g.slices() != nullptr;
  if (all_slices) {
    std::vector<Tensor> values, indices;
    for (const Gradient& g : terms) {
      values.push_back(g.slices()->values);
      indices.push_back(g.slices()->indices);
    }
    return IndexedSlices{concat(values, 0), concat(indices, 0), terms[0].slices()->dense_shape};
  }
  std::vector<Tensor> dense;
  dense.reserve(terms.size());
  for (Gradient& g : terms) dense.push_back(std::move(g).dense());
  return add_n(std::move(dense));
}

}  // namespace

const VSpace kGradients = {
    .aggregate = aggregate,
    .nbytes = [](const Gradient& g) { return g.nbytes(); },
    .zeros = [](const Spec& s) { return zeros(s.shape, s.dtype); },
    .ones = [](const Spec& s) { return ones(s.shape, s.dtype); },
};

Tensor Gradient::dense() const& {
  if (slices_) return scatter_add(slices_->values, slices_->indices, slices_->dense_shape);
  if (!dense_.defined()) throw GradientError("dense: this gradient is none: no path leads from the target to the source; ask defined() first, or for UnconnectedGradients::zero");
  return dense_;
}
Tensor Gradient::dense() && { return dense_.defined() ? std::move(dense_) : static_cast<const Gradient&>(*this).dense(); }

}  // namespace tapedeck
