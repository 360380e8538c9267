// The attributes of the ops that move blocks of pixels to the batch or to channels, and back.
#pragma once
#include "tapedeck/shape.h"

namespace tapedeck {

// Blocks along the axes after the batch axis, which is axis -ndim, and the padding added or cropped around
// them.
struct BlockAttrs {
  int ndim;
  Shape block, before, after;
};
struct DepthAttrs {
  std::int64_t block;
};

}   // namespace tapedeck
