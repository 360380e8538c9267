// The attributes of the ops that select rows.
#pragma once

namespace tapedeck {

// A row is the last `rest` axes of x, after the axes that the mask or the partition numbers cover.
struct RowAttrs {
  int rest;
};
struct PartAttrs {
  int rest, count;
};

}   // namespace tapedeck
