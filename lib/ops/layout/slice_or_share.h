// Shared by ops that only select elements of their input through a strided view.
#pragma once
#include "core/storage.h"
#include "core/trace.h"
#include "kernels/layout/copy.h"

namespace tapedeck {

/// Gives y, which has no memory yet, the elements of x that the view selects: x's own memory if they are
/// contiguous, else a copy.
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
