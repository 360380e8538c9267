// The attributes of repeat, roll and reverse_sequence.
#pragma once
#include <cstdint>
#include <vector>

namespace tapedeck {

// Axes count from the end, so that leading axes of stacked cotangents stay unchanged.
struct RepeatAttrs {
  int axis;
  std::int64_t count;
  std::vector<std::int64_t> counts;   // one count for each entry; if empty, `count` for all
};
struct RollAttrs {
  int axis;
  std::int64_t by;   // 0 <= by < extent
};
struct SequenceAttrs {
  int sequence, batch;
};

}   // namespace tapedeck
