// The attributes of joining and splitting.
#pragma once
#include <cstdint>
#include <vector>

namespace tapedeck {

// Axes count from the end: leading axes, which stacked cotangents have, stay unchanged.
struct AxisAttrs {
  int axis;   // of the tensor that results from joining, or that is split
};
struct SplitAttrs {
  int axis;
  std::vector<std::int64_t> sizes;
};

}   // namespace tapedeck
