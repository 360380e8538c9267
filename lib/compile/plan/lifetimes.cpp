// In: a program and its steps. Out: which nodes are needed, and the first and last step that need each value.
#include <algorithm>

#include "compile/plan/plan.h"

namespace tapedeck::compiled {

IdVector<NodeId, bool> find_live(const Program& p) {
  IdVector<NodeId, bool> live(p.size());
  std::vector<NodeId> found;
  const auto need = [&](NodeId n) {
    if (!n || live[n]) return;
    live[n] = true;
    found.push_back(n);
  };
  for (const Access& a : p.outputs())
    need(p.node_of(a));
  for (const NodeId n : ids_of(p.nodes()))
    if (must_run(p, p[n])) need(n);
  while (!found.empty()) {
    const NodeId n = found.back();
    found.pop_back();
    for_each_operand(p[n], [&](const Access& a) { need(p.node_of(a)); });
  }
  return live;
}

IdVector<ValueId, Life> find_lives(const Program& p, const Steps& steps) {
  IdVector<ValueId, Life> lives(p.values().size());
  const auto use = [&](ValueId v, std::int32_t step) { lives[v].last = std::max(lives[v].last, step); };
  const auto end = static_cast<std::int32_t>(steps.size());
  for (const StepId id : ids_of(steps)) {
    const auto s = static_cast<std::int32_t>(id.index());
    for (const NodeId n : steps[id].nodes) {
      for_each_result(p[n], [&](ValueId v) { lives[v].first = s, use(v, s); });
      // A tensor that a kernel returns may share memory with the operands.
      for_each_operand(p[n], [&](const Access& a) { use(a.of, returns_memory(p[n]) ? end : s); });
    }
  }
  for (const Access& a : p.outputs())
    if (a.reads()) use(a.of, end);
  // A stored value is needed until it is assigned: before the next node that uses variables, or at the end.
  for (std::int32_t s = end, next = end; s-- > 0;) {
    const Node& node = p[steps[StepId(static_cast<std::size_t>(s))].nodes[0]];
    if (uses_variables(node)) next = s;
    if (const StoreNode* store = as<StoreNode>(node)) use(store->in.of, next);
  }
  return lives;
}

}   // namespace tapedeck::compiled
