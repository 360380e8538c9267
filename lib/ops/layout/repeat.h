// The attributes of repeat, roll and reverse_sequence.
#pragma once
#include <cstdint>
#include <vector>

namespace tapedeck {

// Axes count from the end, so that further ones in front pass through.
struct RepeatAttrs {
  int axis;
  std::int64_t count;
  std::vector<std::int64_t> counts;   // counts: one for each entry, else count for all
};
struct RollAttrs {
  int axis;
  std::int64_t by;   // 0 <= by < extent
};
struct SequenceAttrs {
  int sequence, batch;
};

}   // namespace tapedeck
