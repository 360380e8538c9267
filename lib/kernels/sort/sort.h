// Sorting and selection along the last axis, of n entries. NaN is larger than every number, 0 and -0 are
// equal, and sorts are stable. Every dtype but bool.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// values, unless null: the first k entries of each row in order. indices: their positions in the row (i64).
void sort(const Tensor& x, std::int64_t n, std::int64_t k, bool descending, Tensor* values, Tensor& indices);
/// The entry of each row that is at index `place` in ascending order.
void nth_element(const Tensor& x, std::int64_t n, std::int64_t place, Tensor& y);
/// For each of the m entries of a row of `values`, the number of entries of the same row of `sorted` that are
/// less or, if `right`, not larger.
void searchsorted(const Tensor& sorted, std::int64_t n, const Tensor& values, std::int64_t m, bool right,
                  Tensor& y);

}   // namespace tapedeck::kernels
