// The attributes of the ops that move space into the batch or into channels.
#pragma once
#include "tapedeck/shape.h"

namespace tapedeck {

// Blocks of the axes behind the batch axis, which is axis -ndim; and what is added or cut off around them.
struct BlockAttrs {
  int ndim;
  Shape block, before, after;
};
struct DepthAttrs {
  std::int64_t block;
};

}   // namespace tapedeck
