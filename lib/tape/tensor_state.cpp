// In: gradient terms of one tensor. Out: their sum, in the order that GradientOptions::aggregation specifies.
#include "tape/tensor_state.h"

#include "op/primitives.h"
#include "tape/imperative_grad.h"

namespace tapedeck {

void TensorState::sum_all(const VSpace& space) {
  more.insert(more.begin(), std::move(first));
  first = space.aggregate(more);
  more.clear();
}

// Partial sums of halves are kept in f32: in bf16, a sum of equal terms stops growing after 256 terms.
void TensorState::sum_early(const VSpace& space) {
  if (first.is_dense() && is_half(first.tensor().dtype())) {
    narrow = first.tensor().dtype() == DType::f16 ? 1 : 2;
    first = astype(first.tensor(), DType::f32);
  }
  if (narrow)
    for (Gradient& g : more)
      g = astype(g.dense(), DType::f32);
  sum_all(space);
}
void TensorState::finish(const VSpace& space) {
  if (!narrow) return sum_all(space);
  if (!more.empty()) sum_early(space);
  first = astype(first.tensor(), narrow == 1 ? DType::f16 : DType::bf16);
  narrow = 0;
}

void TensorState::add_further(Gradient&& g, const VSpace& space, const GradientOptions& options) {
  ++further;
  const std::int64_t nbytes = space.nbytes(g);
  more.push_back(std::move(g));
  if (options.aggregation == Aggregation::accumulate_n) sum_early(space);
  if (options.aggregation == Aggregation::tree) sum_pairs(space);
  if (options.aggregation != Aggregation::add_n) return;
  const std::size_t count = more.size() + 1;
  if (count >= options.min_aggregate_count &&
      static_cast<std::int64_t>(count) * nbytes > options.min_aggregate_bytes)
    sum_early(space);
}

// Pairwise summation by a binary counter: merges the two newest partial sums while both cover the same number
// of terms.
void TensorState::sum_pairs(const VSpace& space) {
  for (std::uint32_t n = further + 1; n % 2 == 0; n /= 2) {
    if (more.size() == 1) return sum_all(space);
    Gradient pair[] = {std::move(more[more.size() - 2]), std::move(more.back())};
    more.pop_back();
    more.back() = space.aggregate(std::span<Gradient>(pair));
  }
}

}   // namespace tapedeck
