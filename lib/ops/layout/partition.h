// The attributes of the ops that select rows.
#pragma once
#include <cstdint>

namespace tapedeck {

// A row is the last `rest` axes of x, after the axes that the mask or the partition numbers cover.
struct RowAttrs {
  int rest;
};
struct PartAttrs {
  int rest, count;
};
// For ops on partition numbers only, and on indices only.
struct CountOfPartsAttrs {
  int count;
};
struct PlacesAttrs {
  std::int64_t places;
};

}   // namespace tapedeck
