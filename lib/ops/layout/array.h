// The attributes of the ops on shapes and axes.
#pragma once
#include <array>
#include <span>

#include "tapedeck/dtype.h"
#include "tapedeck/shape.h"

namespace tapedeck {

// Attributes refer to the last axes of x only: leading axes, which stacked cotangents have, stay unchanged.
struct ReshapeAttrs {
  int axes;
  Shape shape;   // the last `axes` axes become `shape`
};
struct MaskAttrs {
  unsigned mask;   // bit i: axis -1 - i; for expand_dims an axis of the result
};
struct TransposeAttrs {
  int axes;
  std::array<std::int8_t, Shape::kMaxRank> perm;
  std::span<const std::int8_t> all() const { return {perm.data(), static_cast<std::size_t>(axes)}; }
};
struct TileAttrs {
  Shape reps;
};
struct OneHotAttrs {
  std::int64_t depth;
  DType dtype;
};

}   // namespace tapedeck
