// Loops over lists of indices. Orders by number are stable counting sorts.
#include "kernels/layout/index_lists.h"

#include <algorithm>
#include <utility>

#include "core/bytes.h"
#include "core/cast.h"
#include "core/storage.h"
#include "core/visit.h"
#include "kernels/layout/copy.h"

namespace tapedeck::kernels {
namespace {

// For each number, the position at which its rows begin in the sorted order.
std::vector<std::int64_t> begins_of(const Tensor& numbers, std::int64_t n) {
  std::vector<std::int64_t> begins = count_each(numbers, n);
  std::int64_t begin = 0;
  for (std::int64_t& count : begins)
    begin += std::exchange(count, begin);
  return begins;
}

// Calls f(k, place) for each row k, where `place` is its position in the sorted order.
template <class F> void each_place(const Tensor& numbers, std::int64_t n, const F& f) {
  std::vector<std::int64_t> next = begins_of(numbers, n);
  visit_indices(numbers, [&](const auto list) {
    for (std::size_t k = 0; k < list.size(); ++k)
      f(static_cast<std::int64_t>(k), next[static_cast<std::size_t>(list[k])]++);
  });
}

}   // namespace

std::vector<std::int64_t> count_each(const Tensor& indices, std::int64_t n) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(n));
  visit_indices(indices, [&](const auto list) {
    for (const auto i : list)
      if (i >= 0) ++counts[static_cast<std::size_t>(i)];
  });
  return counts;
}

std::int64_t index_at(const Tensor& indices, std::int64_t position) {
  return visit_indices(
      indices, [&](const auto list) -> std::int64_t { return list[static_cast<std::size_t>(position)]; });
}

std::int64_t largest_index(const Tensor& indices) {
  return visit_indices(indices, [](const auto list) {
    std::int64_t largest = -1;
    for (const std::int64_t i : list)
      largest = std::max(largest, i);
    return largest;
  });
}

// A first pass, without branches, only determines whether the indices descend anywhere.
std::int64_t first_descent(const Tensor& indices) {
  return visit_indices(indices, [](const auto list) -> std::int64_t {
    if (list.empty()) return -1;
    bool falls = list[0] < 0;
    for (std::size_t k = 1; k < list.size(); ++k)
      falls |= list[k] < list[k - 1];
    if (!falls) return -1;
    std::size_t k = 0;
    while (list[k] >= (k ? list[k - 1] : 0))
      ++k;
    return static_cast<std::int64_t>(k);
  });
}

void mark(const Tensor& indices, std::vector<bool>& marked) {
  visit_indices(indices, [&](const auto list) {
    for (const auto i : list)
      if (static_cast<std::size_t>(i) < marked.size()) marked[static_cast<std::size_t>(i)] = true;
  });
}

void place_by_number(const Tensor& numbers, std::int64_t n, Tensor& places) {
  auto* const out = elements<std::int64_t>(places);
  each_place(numbers, n, [&](std::int64_t k, std::int64_t place) { out[k] = place; });
}
void order_by_number(const Tensor& numbers, std::int64_t n, Tensor& order) {
  auto* const out = elements<std::int64_t>(order);
  each_place(numbers, n, [&](std::int64_t k, std::int64_t place) { out[place] = k; });
}

void last_of_each(const Tensor& indices, std::vector<bool>& marked, Tensor& places) {
  auto* const out = elements<std::int64_t>(places);
  visit_indices(indices, [&](const auto list) {
    for (std::size_t k = list.size(); k-- > 0;) {
      const auto i = static_cast<std::size_t>(list[k]);
      out[k] = marked[i] ? -1 : static_cast<std::int64_t>(i);
      marked[i] = true;
    }
  });
}

void one_hot(const Tensor& indices, std::int64_t depth, Tensor& y) {
  clear(y);
  visit_any(y.dtype(), [&]<class T>(T) {
    T* row = elements<T>(y);
    visit_indices(indices, [&](const auto list) {
      for (const auto i : list) {
        if (i >= 0 && i < depth) row[i] = T(1);
        row += depth;
      }
    });
  });
}

std::optional<NoPermutation> invert_permutation(const Tensor& perm, Tensor& y) {
  if (y.dtype() != DType::i32 && y.dtype() != DType::i64) {
    Tensor wide = allocate({DType::i64, y.shape()});
    const auto fault = invert_permutation(to_i64(perm), wide);
    if (!fault) cast(wide, y);
    return fault;
  }
  return visit_indices(perm, [&]<class Index>(std::span<const Index> list) -> std::optional<NoPermutation> {
    const std::span<Index> inverse(elements<Index>(y), list.size());
    std::fill(inverse.begin(), inverse.end(), Index(-1));
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto position = static_cast<std::int64_t>(i);
      if (list[i] < 0 || static_cast<std::size_t>(list[i]) >= list.size())
        return NoPermutation{list[i], position};
      Index& place = inverse[static_cast<std::size_t>(list[i])];
      if (place >= 0) return NoPermutation{list[i], position, place};
      place = static_cast<Index>(i);
    }
    return {};
  });
}

}   // namespace tapedeck::kernels
