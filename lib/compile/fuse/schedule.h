// The steps in which a program is replayed, and their order.
#pragma once
#include "compile/fuse/fusible.h"

namespace tapedeck::compiled {

/// A unit of a replay: one node, or a group of elementwise nodes that are fused into one pass over blocks.
struct Step {
  std::vector<NodeId> nodes;
  bool fused = false;
};
using Steps = IdVector<StepId, Step>;

/// All live nodes, in topological order. Nodes that read, store or act on variables keep their order relative
/// to each other; so do nodes that must run, and actions relative to nodes that may throw.
Steps schedule(const Program& p, const Passes& passes, const IdVector<NodeId, bool>& live);

}   // namespace tapedeck::compiled
