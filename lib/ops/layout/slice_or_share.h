// For ops that select elements of their input through a strided view: shares memory with the input, or
// copies.
#pragma once
#include "core/storage.h"
#include "core/trace.h"
#include "kernels/layout/copy.h"

namespace tapedeck {

/// Sets y, which has no memory yet, to the elements of x that the view selects. y shares memory with x if
/// they are contiguous; otherwise they are copied.
inline void take(const Tensor& x, const kernels::StridedView& view, Tensor& y) {
  if (y.size() && view.contiguous()) return share_with(y, x, view.offset());
  allocate_for(y);
  kernels::copy_from(x, view, y);
  if (thread_state.trace) thread_state.trace->on_select(y, x, view);
}

/// The shape `last` extended to rank ndim by leading axes of extent `front`.
inline Shape filled_in_front(const Shape& last, int ndim, std::int64_t front) {
  Shape result;
  for (int d = last.ndim(); d < ndim; ++d)
    result.push_back(front);
  for (const std::int64_t d : last)
    result.push_back(d);
  return result;
}

}   // namespace tapedeck
