// The attributes of sorting and searching.
#pragma once
#include <cstdint>

namespace tapedeck {

struct SortAttrs {
  bool descending;
  int axis = -1;
  std::int64_t k = -1;   // the axis counts from the end; k: how many elements to return, -1 for all
};
// Along the last axis; the public functions move other axes there.
struct NthAttrs {
  std::int64_t n;
  bool reverse;
};
struct SearchAttrs {
  bool right;
};

}   // namespace tapedeck
