// The effects of a node other than its results: it may throw, have a visible effect, or change variables.
#pragma once
#include "compile/ir/program.h"

namespace tapedeck::compiled {

/// Whether an op throws or prints depending on the data.
inline bool has_effect(const Op& op) { return op.meaning == Meaning::effect || op.meaning == Meaning::check; }
/// Whether an op infers its outputs from shapes alone, as elementwise ops and ops with a known Meaning do.
/// Other ops may read numbers, to check indices or to count elements.
inline bool infers_from_shapes(const OpNode& n) { return n.map || n.op->meaning != Meaning::other; }
/// Whether a node may read and change any variable when it runs; whether it changes some.
inline bool uses_variables(const Node& n) {
  const OpNode* op = as<OpNode>(n);
  return as<ActionNode>(n) || (op && op->uses_variables);
}
inline bool changes_variables(const Node& n) { return as<StoreNode>(n) || uses_variables(n); }
/// Whether a node must run even if nothing reads its results: it changes variables; it has an effect; or it
/// has integers or bools, which it may check, or on which the shape of its results may depend.
bool must_run(const Program& p, const Node& node);
/// Whether a node may throw depending on numbers. Ops with an effect are covered by acts().
bool may_throw(const Node& node);
/// Whether a node has an immediate visible effect, which an error later in the replay does not undo.
/// Assignments to variables do not count, since they take effect at the end of a replay.
inline bool acts(const Node& node) {
  const OpNode* n = as<OpNode>(node);
  return as<ActionNode>(node) || (n && has_effect(*n->op));
}
/// Whether a node of the program acts.
bool acts(const Program& p);
/// Whether a node of the program reads or changes variables.
bool uses_variables(const Program& p);

}   // namespace tapedeck::compiled
