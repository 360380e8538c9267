// Elements moved. In: tensors and where their elements go. Out: the same elements elsewhere, or as another
// type.
#pragma once
#include "kernels/layout/strided_view.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Fills y with the elements of x at these places.
void copy_from(const Tensor& x, const StridedView& view, Tensor& y);
/// Writes the elements of x to these places of y, no two of which are one.
void copy_to(const Tensor& x, Tensor& y, const StridedView& view);
/// Adds the elements of x to these places of y, no two of which are one.
void add_to(const Tensor& x, Tensor& y, const StridedView& view);

/// Runs of elements in a tensor: where the first one starts, and how far it is from one to the next.
struct Runs {
  std::int64_t first, step;
};
/// Writes `count` runs of n elements of x over runs of y.
void copy_runs(const Tensor& x, Runs from, Tensor& y, Runs to, std::int64_t count, std::int64_t n);

/// Fills y with zeros; with zeros but for n elements at these places, which are written elsewhere.
void clear(Tensor& y);
void clear_around(Tensor& y, const StridedView& view, std::int64_t n);
/// Fills y with x converted, as convert() does it.
void cast(const Tensor& x, Tensor& y);

}   // namespace tapedeck::kernels
