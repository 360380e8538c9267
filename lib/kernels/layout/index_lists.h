// Counting and searching in lists of indices: i32, i64, or other integers, which are converted. Each function
// runs on one thread.
#pragma once
#include <optional>
#include <vector>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Element i of the result counts the indices that equal i. Skips negative indices. Precondition: all indices
/// are less than n.
std::vector<std::int64_t> count_each(const Tensor& indices, std::int64_t n);
/// index_at: the index at a flat position. largest_index: the largest index, or -1 if there is none.
std::int64_t index_at(const Tensor& indices, std::int64_t position);
std::int64_t largest_index(const Tensor& indices);
/// The first position of an index that is negative or less than the previous one, or -1.
std::int64_t first_descent(const Tensor& indices);
/// Sets marked[i] for each index i below marked.size(). Precondition: no index is negative.
void mark(const Tensor& indices, std::vector<bool>& marked);

/// A stable sort of the rows of a tensor by their numbers, which are in 0 … n - 1. places[k] is the position
/// of row k, and order[i] the row at position i; both are i64.
void place_by_number(const Tensor& numbers, std::int64_t n, Tensor& places);
void order_by_number(const Tensor& numbers, std::int64_t n, Tensor& order);
/// places[k], i64, is indices[k], or -1 if a later index is equal or the index is marked already. Marks all
/// indices. Precondition: no index is negative.
void last_of_each(const Tensor& indices, std::vector<bool>& marked, Tensor& places);

/// y, [k, depth], is 1 at [k, indices[k]] and 0 elsewhere. Rows whose index is out of range are zeros.
void one_hot(const Tensor& indices, std::int64_t depth, Tensor& y);

/// The reason why a list is no permutation of 0, 1, …: the entry at `position` is out of range, or it is also
/// at position `before`.
struct NoPermutation {
  std::int64_t entry, position, before = -1;
};
/// y[perm[k]] = k, with the spec of perm. Returns the reason if perm is no permutation.
std::optional<NoPermutation> invert_permutation(const Tensor& perm, Tensor& y);

}   // namespace tapedeck::kernels
