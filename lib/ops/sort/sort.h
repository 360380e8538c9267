// The attributes of sorting and searching.
#pragma once
#include <cstdint>

namespace tapedeck {

struct SortAttrs {
  bool descending;
  int axis = -1;         // counted from the end
  std::int64_t k = -1;   // the number of elements to return; -1: all
};
// The op works along the last axis; nth_element moves other axes there.
struct NthAttrs {
  std::int64_t n;
  bool reverse;
};
struct SearchAttrs {
  bool right;
};

}   // namespace tapedeck
