// The attributes of the ops on unsorted segments.
#pragma once
#include "kernels/reduce/segment.h"

namespace tapedeck {

struct RowsAttrs {
  int axis;
};

// Describes the divisors of sums of `count` groups along an axis counted from the end, in this dtype.
struct DivisorsAttrs {
  std::int64_t count;
  int axis;
  kernels::Divisor divisor;
  DType dtype;
};

}   // namespace tapedeck
