// In: gradient terms of one tensor. Out: their sum, made in the order that GradientOptions::aggregation asks
// for.
#include "tape/tensor_state.h"

#include "tape/imperative_grad.h"

namespace tapedeck {

void TensorState::sum_all(const VSpace& space) {
  more.insert(more.begin(), std::move(first));
  first = space.aggregate(more);
  more.clear();
}

void TensorState::add_further(Gradient&& g, const VSpace& space, const GradientOptions& options) {
  ++further;
  const std::int64_t nbytes = space.nbytes(g);
  more.push_back(std::move(g));
  if (options.aggregation == Aggregation::accumulate_n) sum_all(space);
  if (options.aggregation == Aggregation::tree) sum_pairs(space);
  if (options.aggregation != Aggregation::add_n) return;
  const std::size_t count = more.size() + 1;
  if (count >= options.min_aggregate_count &&
      static_cast<std::int64_t>(count) * nbytes > options.min_aggregate_bytes)
    sum_all(space);
}

// Binary counter: merges the two newest partial sums while they cover equal counts of terms.
void TensorState::sum_pairs(const VSpace& space) {
  for (std::uint32_t n = further + 1; n % 2 == 0; n /= 2) {
    if (more.size() == 1) return sum_all(space);
    Gradient pair[] = {std::move(more[more.size() - 2]), std::move(more.back())};
    more.pop_back();
    more.back() = space.aggregate(std::span<Gradient>(pair));
  }
}

}   // namespace tapedeck
