// Multi-dimensional positions along the first axes of a tensor, in the format of gather_nd and scatter_nd:
// the second input of a call is indices [entries…, depth], whose last axis has the coordinates of a position.
#pragma once
#include "ops/axes.h"

namespace tapedeck {

/// The shape with `count` axes, from index `axis` on, replaced by `others`.
Shape replaced(const Shape& shape, int axis, int count, const Shape& others);

inline int depth_of(const Call& c) { return static_cast<int>(c.x[1].shape()[c.x[1].ndim() - 1]); }
inline Shape entries_of(const Call& c) {
  return Shape(c.x[1].shape().dims().first(static_cast<std::size_t>(c.x[1].ndim() - 1)));
}
/// Throws DTypeError or ShapeError unless the second input can hold positions along at most `axes` axes.
void require_nd_indices(const Call& c, int axes);
/// The positions as row-major flat indices into the first axes of `indexed`. Throws ShapeError, naming the
/// tensor by `name` and `spec`, if a position is out of range.
Tensor flat_indices(const Call& c, const Shape& indexed, std::string_view name, const Spec& spec);

/// Throws ShapeError, naming the tensor by `name`, unless the second input's indices are in range for that
/// axis of `indexed`.
void require_in_range(const Call& c, const Tensor& indexed, std::string_view name, int axis);

/// gather_nd by positions along the first of the last `axes` axes of x, and its adjoint; for rules.
Tensor gather_positions(const Tensor& x, const Tensor& indices, int axes);
Tensor scatter_positions(const Tensor& updates, const Tensor& indices, const Shape& shape);

}   // namespace tapedeck
