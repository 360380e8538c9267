// The attributes of joining and splitting.
#pragma once
#include <cstdint>
#include <vector>

namespace tapedeck {

// Axes count from the end: further axes in front, which stacked cotangents have, stay as they are.
struct AxisAttrs {
  int axis;   // of what is joined or cut
};
struct SplitAttrs {
  int axis;
  std::vector<std::int64_t> sizes;
};

}   // namespace tapedeck
