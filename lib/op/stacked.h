// Shapes of stacked tangents and cotangents, which have further axes in front.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

inline Shape behind(Shape front, const Shape& rest) {
  for (const std::int64_t d : rest)
    front.push_back(d);
  return front;
}
/// The axes that t has in front of its last `ndim`.
inline Shape extra_of(const Tensor& t, int ndim) {
  return Shape(t.shape().dims().first(static_cast<std::size_t>(t.ndim() - ndim)));
}
/// `shape` behind the axes that t has in front of its last `ndim`.
inline Shape behind_extra(const Tensor& t, int ndim, const Shape& shape) {
  return behind(extra_of(t, ndim), shape);
}
/// The shape of t with extents of 1 before its last `ndim` axes, so that these are `to`.
inline Shape aligned(const Tensor& t, int ndim, int to) {
  Shape shape = extra_of(t, ndim);
  for (int d = ndim; d < to; ++d)
    shape.push_back(1);
  for (int d = t.ndim() - ndim; d < t.ndim(); ++d)
    shape.push_back(t.shape()[d]);
  return shape;
}

}   // namespace tapedeck
