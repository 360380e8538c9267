// The order in which a program is replayed.
#pragma once
#include "program/program.h"

namespace tapedeck::program {

/// What a replay runs at once: one node, or a group of elementwise ones in one pass over blocks.
struct ProgramStep {
  std::vector<std::int32_t> nodes;
  bool fused = false;
};

/// All nodes of `live`, in an order in which each comes after what it reads. Nodes that read, store or act on
/// variables keep their order among each other.
std::vector<ProgramStep> schedule(const Program& p, const std::vector<bool>& live);

}   // namespace tapedeck::program
