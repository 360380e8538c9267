// The attributes of slices and padding, and functions on them for rules.
#pragma once
#include "tapedeck/op.h"
#include "tapedeck/ops/slice.h"

namespace tapedeck {

// Attributes refer to the last axes only, and axes count from the end: leading axes, which stacked cotangents
// have, stay unchanged.
struct SliceAttrs {
  Shape begin, size;
};
struct PadAttrs {
  Shape before, after;
  double value = 0;
};
// A strided part of a tensor of shape `whole`, with extents `size`. The result has the shape `shape`, which
// may differ from `size` in axes of extent 1.
struct StridedAttrs {
  Shape whole, begin, size, stride, shape;
};

/// Throws ShapeError unless a and b have one entry for each axis of x.
void require_same_rank(std::string_view name, const Tensor& x, const Shape& a, const Shape& b);

Tensor padded(const Tensor& x, const PadAttrs& padding);
Tensor part_of(const Tensor& x, const SliceAttrs& part);
Tensor strided_part_of(const Tensor& x, const StridedAttrs& part);

}   // namespace tapedeck
