#include "program/schedule.h"

namespace tapedeck {

std::vector<ProgramStep> schedule(const Program& p, const std::vector<bool>& live) {
  std::vector<ProgramStep> steps;
  for (std::size_t n = 0; n < p.nodes.size(); ++n)
    if (live[n]) steps.push_back({{static_cast<std::int32_t>(n)}, false});
  return steps;
}

}   // namespace tapedeck
