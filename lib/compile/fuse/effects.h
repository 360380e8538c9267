// What a node does beside computing its results: it may throw, be seen, or change variables.
#pragma once
#include "compile/ir/program.h"

namespace tapedeck::compiled {

/// Whether an op infers its outputs from shapes alone, as elementwise ops do and those whose meaning programs
/// know. Others may read numbers: to check indices, or to count what they find.
inline bool infers_from_shapes(const OpNode& n) { return n.map || n.op->meaning != Meaning::other; }
/// Whether a node runs even if nothing reads its results: it changes variables; it has an effect; or it has
/// integers or bools and may check them, or have a shape that depends on them, on which later nodes rely.
bool must_run(const Program& p, const Node& node);
/// Whether numbers may make it throw; ops with an effect are left to acts().
inline bool may_throw(const Node& node) {
  const OpNode* n = as<OpNode>(node);
  return n && !infers_from_shapes(*n);
}
/// Whether it does at once what others see, and what an error later in the replay does not undo. Variables
/// that are assigned change at the end of a replay.
inline bool acts(const Node& node) {
  const OpNode* n = as<OpNode>(node);
  return as<ActionNode>(node) || (n && n->op->meaning == Meaning::effect);
}

}   // namespace tapedeck::compiled
