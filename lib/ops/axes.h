// Axes counted from the end, so that rules see the same ones whatever stands in front: bit i of a mask is
// axis -1 - i.
#pragma once
#include "op/stacked.h"
#include "ops/infer.h"
#include "tapedeck/ops/array.h"
#include "tapedeck/ops/reduce.h"

namespace tapedeck {

/// The axes of an x of that rank as a mask. Throws ShapeError for one that is out of range or named twice.
unsigned mask_of(std::string_view op, std::string_view arg, const Axes& axes, int ndim);
inline unsigned mask_of(const Op& op, const Axes& axes, int ndim) {
  return mask_of(op.name, op.args[0], axes, ndim);
}

/// axis counted from 0, for an axis that is one of `ndim` of a result made of x. Throws ShapeError where it
/// is out of range.
int checked_position(std::string_view name, int axis, int ndim, const Tensor& x);

/// x without the axes of the mask, or with extents of 1 in their places.
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

/// x with that axis, counted from 0, behind all others, and with the last one there again; for ops along the
/// last axis.
Tensor with_axis_last(const Tensor& x, int axis);
Tensor with_last_axis_at(const Tensor& x, int axis);

/// The rule of an op that repeats x along further axes, where stacked tangents have theirs in front of these.
constexpr Rule broadcasting(Rule rule) {
  rule.jvp = [](const Call& c, Refs dx, std::span<Tensor> dy) {
    const Shape& y = c.y[0].shape();
    dy[0] = broadcast_to(reshape(dx[0], aligned(dx[0], c.x[0].ndim(), y.ndim())),
                         behind_extra(dx[0], c.x[0].ndim(), y));
  };
  return rule;
}

/// The first input's spec with `to` in place of its last axes. Throws ShapeError unless these are `from`.
Spec replaced_last(const Call& c, const Shape& from, const Shape& to);

}   // namespace tapedeck
