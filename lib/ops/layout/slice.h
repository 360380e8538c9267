// Slices and padding by their attributes, for rules.
#pragma once
#include "tapedeck/op.h"
#include "tapedeck/ops/slice.h"

namespace tapedeck {

// Attributes speak of the last axes only, and axes count from the end: further axes in front, which stacked
// cotangents have, stay as they are.
struct SliceAttrs {
  Shape begin, size;
};
struct PadAttrs {
  Shape before, after;
  double value = 0;
};
// A part of `whole`; as a tensor its shape is `shape`, which has other axes of extent 1 than size.
struct StridedAttrs {
  Shape whole, begin, size, stride, shape;
};

/// Throws ShapeError unless there is an entry of both for each axis of x.
void require_same_rank(std::string_view name, const Tensor& x, const Shape& a, const Shape& b);

Tensor padded(const Tensor& x, const PadAttrs& padding);
Tensor part_of(const Tensor& x, const SliceAttrs& part);
Tensor strided_part_of(const Tensor& x, const StridedAttrs& part);

}   // namespace tapedeck
