// Where elements appear.
#pragma once
#include <vector>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// The different elements of a tensor, numbered in the order in which they first appear. Values of NaN are one, and 0 and -0.
struct Appearances {
  std::vector<std::int64_t> number;   // of each element
  std::vector<std::int64_t> first;    // where each number first appears
};
Appearances appearances(const Tensor& x);

/// How many elements are not 0.
std::int64_t count_nonzero(const Tensor& x);
/// Their positions, in row-major order: y is [count, x.ndim()], i64.
void nonzero(const Tensor& x, Tensor& y);

}  // namespace tapedeck::kernels
