#pragma once
#include "program/schedule.h"

namespace tapedeck {

class Group {
 public:
  Group(const Program&, const ProgramStep&, const std::vector<bool>&) {}
  void run(std::byte* const*, std::byte*) const {}
  std::int64_t scratch_bytes() const { return 0; }
};

}   // namespace tapedeck
