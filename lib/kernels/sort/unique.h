// Distinct elements, nonzero elements, and selection by a mask.
#pragma once
#include <vector>

#include "kernels/layout/strided_view.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// The distinct elements of a tensor, numbered in order of first appearance. All NaNs are equal, and so are 0
/// and -0.
struct UniqueElements {
  std::vector<std::int64_t> number;   // the number of each element
  std::vector<std::int64_t> first;    // the position at which each number first appears
};
UniqueElements unique_elements(const Tensor& x);

/// The number of nonzero elements, of x or over axes, which are bits counted from the end. y is i64, and has
/// the other axes.
std::int64_t count_nonzero(const Tensor& x);
void count_nonzero(const Tensor& x, unsigned axes, Tensor& y);
/// y = the entries of x along the axis where mask (bool, one per entry) is true, in order. `view` describes
/// x.
void boolean_mask(const Tensor& x, const Tensor& mask, const AxisView& view, Tensor& y);
/// The adjoint of boolean_mask: scatters the entries of x to the positions where mask is true; other entries
/// of y are zeros. `view` describes y.
void boolean_mask_adjoint(const Tensor& x, const Tensor& mask, const AxisView& view, Tensor& y);
/// The positions of nonzero elements in row-major order: y is [count, x.ndim()], i64.
void nonzero(const Tensor& x, Tensor& y);

}   // namespace tapedeck::kernels
