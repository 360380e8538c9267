// What ops count and find in lists of indices: i32, i64, or other integers, which are converted. One pass
// each, on one thread.
#pragma once
#include <optional>
#include <vector>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// How many indices are 0, 1, …, n - 1; negative ones are passed over, and none is n or more.
std::vector<std::int64_t> count_each(const Tensor& indices, std::int64_t n);
/// The index at a flat position, and the largest one, or -1.
std::int64_t index_at(const Tensor& indices, std::int64_t position);
std::int64_t largest_index(const Tensor& indices);
/// The first position with an index that is negative or less than the one before, or -1.
std::int64_t first_descent(const Tensor& indices);
/// Sets the bits of indices that have one; none is negative.
void mark(const Tensor& indices, std::vector<bool>& marked);

/// The rows of a tensor in the order of their numbers, rows of one number in their own order: where each row
/// comes, and which row comes in each place. i64; numbers are in 0 … n - 1.
void place_by_number(const Tensor& numbers, std::int64_t n, Tensor& places);
void order_by_number(const Tensor& numbers, std::int64_t n, Tensor& order);
/// places[k] is indices[k], or -1 if a later index is the same or it was marked before. i64; marks the
/// indices, of which none is negative.
void last_of_each(const Tensor& indices, std::vector<bool>& marked, Tensor& places);

/// y, [k, depth], is 1 at [k, indices[k]], and else 0; so it is in rows of an index that is out of range.
void one_hot(const Tensor& indices, std::int64_t depth, Tensor& y);

/// Why a list is no permutation of 0, 1, …: its entry at a position is out of range, or is also at the
/// position `before`.
struct NoPermutation {
  std::int64_t entry, position, before = -1;
};
/// y[perm[k]] = k, of perm's spec. What it returns says why not.
std::optional<NoPermutation> invert_permutation(const Tensor& perm, Tensor& y);

}   // namespace tapedeck::kernels
