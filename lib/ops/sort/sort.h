// The attributes of sorting and searching.
#pragma once
#include <cstdint>

namespace tapedeck {

struct SortAttrs {
  bool descending;
  int axis = -1;
  std::int64_t k = -1;   // the axis from the end, and how many come out: all, unless said
};
// Along the last axis; others are moved there.
struct NthAttrs {
  std::int64_t n;
  bool reverse;
};
struct SearchAttrs {
  bool right;
};

}   // namespace tapedeck
