// Copies between tensors and strided views.
#pragma once
#include "kernels/layout/strided_view.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Fills y with the elements of x that the view selects.
void copy_from(const Tensor& x, const StridedView& view, Tensor& y);
/// Writes the elements of x to the view's elements of y, which must not overlap.
void copy_to(const Tensor& x, Tensor& y, const StridedView& view);
/// Adds the elements of x to the view's elements of y, which must not overlap.
void add_to(const Tensor& x, Tensor& y, const StridedView& view);

/// Equally spaced runs of contiguous elements: the offset of the first run, and the distance between two.
struct Runs {
  std::int64_t first, step;
};
/// Copies `count` runs of n elements from x to y.
void copy_runs(const Tensor& x, Runs from, Tensor& y, Runs to, std::int64_t count, std::int64_t n);

/// Fills y with zeros. `clear_around` may skip the view's n elements, which the caller overwrites.
void clear(Tensor& y);
void clear_around(Tensor& y, const StridedView& view, std::int64_t n);

}   // namespace tapedeck::kernels
