// The order in which a program is replayed.
#pragma once
#include "compile/fuse/fusible.h"

namespace tapedeck::compiled {

/// What a replay runs at once: one node, or a group of elementwise ones in one pass over blocks.
struct Step {
  std::vector<NodeId> nodes;
  bool fused = false;
};
using Steps = IdVector<StepId, Step>;

/// All nodes of `live`, in an order in which each comes after what it reads. Nodes that read, store or act on
/// variables keep their order among each other; so do those that must run, and actions beside what may throw.
Steps schedule(const Program& p, const Passes& passes, const IdVector<NodeId, bool>& live);

}   // namespace tapedeck::compiled
