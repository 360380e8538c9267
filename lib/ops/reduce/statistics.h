// The attributes of the statistics.
#pragma once

namespace tapedeck {

struct CountAttrs {
  unsigned axes;
  bool keepdims;
};

}   // namespace tapedeck
