// Order along the last axis, of n entries. NaN is larger than every number, 0 and -0 are equal, and equal
// elements keep their order. Every dtype but bool.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// The first k entries of each row of x in order, unless they are not asked for, and where they stand in it
/// (i64).
void sort(const Tensor& x, std::int64_t n, std::int64_t k, bool descending, Tensor* values, Tensor& indices);
/// The entry of each row at place `place` of the row in ascending order.
void nth_element(const Tensor& x, std::int64_t n, std::int64_t place, Tensor& y);
/// For each of m entries of a row of `values`, how many entries of that row of `sorted` are less; or are not
/// larger.
void searchsorted(const Tensor& sorted, std::int64_t n, const Tensor& values, std::int64_t m, bool right,
                  Tensor& y);

}   // namespace tapedeck::kernels
