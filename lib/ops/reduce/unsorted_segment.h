// The attributes of the ops on unsorted segments.
#pragma once

namespace tapedeck {

struct RowsAttrs {
  int axis;
};

}   // namespace tapedeck
