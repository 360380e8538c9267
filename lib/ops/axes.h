// Masks of axes, counted from the end so that leading axes added by stacking do not change them: bit i of a
// mask stands for axis -1 - i.
#pragma once
#include "op/stacked_shapes.h"
#include "ops/infer.h"
#include "tapedeck/ops/array.h"
#include "tapedeck/ops/reduce.h"

namespace tapedeck {

/// Returns the mask of the given axes of an x of rank `ndim`. Throws ShapeError if an axis is out of range or
/// given twice.
unsigned mask_of(std::string_view op, std::string_view arg, const Axes& axes, int ndim);
inline unsigned mask_of(const Op& op, const Axes& axes, int ndim) {
  return mask_of(op.name, op.args[0], axes, ndim);
}

/// Returns the axis counted from 0, for an axis of a tensor of rank `ndim`. Throws ShapeError, which states
/// the spec of x, if the axis is out of range.
int checked_position(std::string_view name, int axis, int ndim, const Tensor& x);

/// Returns the shape x without the axes in the mask; with keepdims, their extents become 1 instead.
inline Shape without(const Shape& x, unsigned mask, bool keepdims) {
  Shape y;
  for (int d = 0; d < x.ndim(); ++d) {
    if (!(mask >> (x.ndim() - 1 - d) & 1))
      y.push_back(x[d]);
    else if (keepdims)
      y.push_back(1);
  }
  return y;
}

/// with_axis_last moves the given axis (counted from 0) to the end; with_last_axis_at moves the last axis
/// back to that position. For ops that work along the last axis.
Tensor with_axis_last(const Tensor& x, int axis);
Tensor with_last_axis_at(const Tensor& x, int axis);

/// Returns the rule with the jvp of an op that broadcasts x. In stacked tangents, the stacking axes come
/// before the axes that the op adds.
constexpr Rule broadcasting(Rule rule) {
  rule.jvp = [](const Call& c, Refs dx, std::span<Tensor> dy) {
    const Shape& y = c.y[0].shape();
    dy[0] = broadcast_to(aligned(dx[0], c.x[0].ndim(), y.ndim()), behind_extra(dx[0], c.x[0].ndim(), y));
  };
  return rule;
}

/// Returns the first input's spec with its last axes, `from`, replaced by `to`. Throws ShapeError if its last
/// axes are not `from`.
Spec replaced_last(const Call& c, const Shape& from, const Shape& to);

}   // namespace tapedeck
