// Where elements appear.
#pragma once
#include <vector>

#include "kernels/layout/strided_view.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// The different elements of a tensor, numbered in the order in which they first appear. Values of NaN are
/// one, and 0 and -0.
struct UniqueElements {
  std::vector<std::int64_t> number;   // of each element
  std::vector<std::int64_t> first;    // where each number first appears
};
UniqueElements unique_elements(const Tensor& x);

/// How many elements are not 0; and over axes, as bits counted from the end: y is i64 and has the other axes.
std::int64_t count_nonzero(const Tensor& x);
void count_nonzero(const Tensor& x, unsigned axes, Tensor& y);
/// Of x seen as `around`, the entries along the axis for which mask (bool, one for each) holds, in their
/// order; y has as many.
void boolean_mask(const Tensor& x, const Tensor& mask, const AxisView& view, Tensor& y);
/// The opposite: y is seen as `around`, and has zeros where mask does not hold.
void boolean_mask_adjoint(const Tensor& x, const Tensor& mask, const AxisView& view, Tensor& y);
/// The positions of elements that are not 0, in row-major order: y is [count, x.ndim()], i64.
void nonzero(const Tensor& x, Tensor& y);

}   // namespace tapedeck::kernels
