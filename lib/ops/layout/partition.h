// The attributes of the ops that select rows.
#pragma once

namespace tapedeck {

// A row is what lies behind the marked axes of x: its last `rest` axes.
struct RowAttrs {
  int rest;
};
struct PartAttrs {
  int rest, count;
};

}   // namespace tapedeck
