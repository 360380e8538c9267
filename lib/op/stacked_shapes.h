// Shapes of stacked tangents and cotangents, which have additional leading axes.
#pragma once
#include "op/primitives.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

inline Shape behind(Shape front, const Shape& rest) {
  for (const std::int64_t d : rest)
    front.push_back(d);
  return front;
}
/// n tensors of this spec along a new first axis, and one of those.
inline Spec stacked(const Spec& entry, std::int64_t n) { return {entry.dtype, behind({n}, entry.shape)}; }
inline Spec entry_of(const Spec& stacked) { return {stacked.dtype, Shape(stacked.shape.dims().subspan(1))}; }
/// The extents of t's axes before its last `ndim` axes.
inline Shape extra_of(const Tensor& t, int ndim) {
  return Shape(t.shape().dims().first(static_cast<std::size_t>(t.ndim() - ndim)));
}
/// `shape`, preceded by the extents of t's axes before its last `ndim` axes.
inline Shape behind_extra(const Tensor& t, int ndim, const Shape& shape) {
  return behind(extra_of(t, ndim), shape);
}
/// Reshapes dx, the tangent of a tensor of rank `ndim`, for an op that broadcasts this tensor to rank `to`:
/// axes of extent 1 are inserted after the leading axes of stacked tangents.
inline Tensor aligned(const Tensor& dx, int ndim, int to) {
  if (dx.ndim() == ndim || ndim >= to) return dx;
  Shape shape = extra_of(dx, ndim);
  for (int d = ndim; d < to; ++d)
    shape.push_back(1);
  for (int d = dx.ndim() - ndim; d < dx.ndim(); ++d)
    shape.push_back(dx.shape()[d]);
  return reshape(dx, shape);
}

}   // namespace tapedeck
