// Shapes of stacked tangents and cotangents, which have further axes in front.
#pragma once
#include "op/primitives.h"
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
/// The tangent of a tensor of `ndim` axes, for an op that broadcasts this tensor to `to` axes. Axes of
/// stacked tangents stay in front of those that broadcasting adds.
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
