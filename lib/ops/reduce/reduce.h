// The attributes of the reductions.
#pragma once

namespace tapedeck {

struct ReduceAttrs {
  unsigned axes;
  bool keepdims;
};

}   // namespace tapedeck
