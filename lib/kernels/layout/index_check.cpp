// Checks indices, on one thread. A first pass only determines whether any index is out of range; it has no
// branches, so that it is vectorized. A second pass finds the position, which only a message needs.
#include "kernels/layout/index_check.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/bytes.h"
#include "core/visit.h"

namespace tapedeck::kernels {
namespace {

// Whether any of n indices exceeds `last` or, unless negative indices have a meaning, is negative, as the
// sign bits of index and last - index show. The difference wraps around only if the index is negative.
template <class Index>
bool any_outside(const Index* index, std::int64_t n, Index last, bool negative_means_something) {
  using Bits = std::make_unsigned_t<Index>;
  Bits low = 0, high = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = static_cast<Bits>(index[i]);
    low |= bits;
    high |= (static_cast<Bits>(last) - bits) & ~bits;
  }
  return static_cast<Index>(negative_means_something ? high : low | high) < 0;
}

}   // namespace

std::optional<Outside> first_outside(const Tensor& indices, std::int64_t extent,
                                     bool negative_means_something) {
  return visit_indices(indices, [&]<class List>(const List& list) -> std::optional<Outside> {
    using Index = std::remove_cv_t<typename List::element_type>;
    constexpr std::int64_t most = std::numeric_limits<Index>::max();
    const auto last = static_cast<Index>(std::min(extent - 1, most));
    const auto is_outside = [=](Index i) { return i > last || (i < 0 && !negative_means_something); };
    if (extent > 0 && !any_outside(list.data(), std::ssize(list), last, negative_means_something)) return {};
    const auto at = std::find_if(list.begin(), list.end(), is_outside);
    if (at == list.end()) return {};
    return Outside{*at, at - list.begin()};
  });
}

std::optional<std::int64_t> flatten_positions(const Tensor& indices, const Shape& extents, Tensor& flat) {
  const int depth = extents.ndim();
  return visit_indices(indices, [&](const auto list) -> std::optional<std::int64_t> {
    const auto* index = list.data();
    for (std::int64_t k = 0; k < flat.size(); ++k, index += depth) {
      std::uint64_t position = 0;   // wraps around only if the entries have no elements
      bool outside = false;
      for (int d = 0; d < depth; ++d) {
        const std::int64_t at = index[d];
        outside |= (at < 0) | (at >= extents[d]);
        position = position * static_cast<std::uint64_t>(extents[d]) + static_cast<std::uint64_t>(at);
      }
      if (outside) return k;
      elements<std::int64_t>(flat)[k] = static_cast<std::int64_t>(position);
    }
    return {};
  });
}

}   // namespace tapedeck::kernels
