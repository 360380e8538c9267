// What ops that only say where elements come from have in common.
#pragma once
#include "core/storage.h"
#include "kernels/layout/copy.h"

namespace tapedeck {

/// Gives y, which is blank, the elements of x at these places: x's own memory where they follow each other,
/// else a copy.
inline void take(const Tensor& x, const kernels::StridedView& view, Tensor& y) {
  if (y.size() && view.contiguous()) return share_with(y, x, view.offset());
  allocate_for(y);
  kernels::copy_from(x, view, y);
}

/// The shape `last` behind further axes in front, of these extents, up to rank ndim.
inline Shape filled_in_front(const Shape& last, int ndim, std::int64_t front) {
  Shape result;
  for (int d = last.ndim(); d < ndim; ++d)
    result.push_back(front);
  for (const std::int64_t d : last)
    result.push_back(d);
  return result;
}

}   // namespace tapedeck
