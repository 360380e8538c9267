// The attributes of the ops on unsorted segments.
#pragma once
#include "kernels/reduce/segment.h"

namespace tapedeck {

struct RowsAttrs {
  int axis;
};

// What sums of `count` groups along an axis, counted from the end, are divided by, in that dtype.
struct DivisorsAttrs {
  std::int64_t count;
  int axis;
  kernels::Divisor divisor;
  DType dtype;
};

}   // namespace tapedeck
