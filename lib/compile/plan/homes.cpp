// In: a program, its steps, and the lives of its values. Out: the kind of memory in which each value is
// stored.
#include <algorithm>

#include "compile/plan/plan.h"

namespace tapedeck::compiled {
namespace {

// The values that must be in memory: those that another step than the defining one reads, the results of
// steps that are not fused, and outputs.
IdVector<ValueId, bool> find_kept(const Program& p, const Steps& steps,
                                  const IdVector<ValueId, Life>& lives) {
  IdVector<ValueId, bool> kept(p.values().size());
  for (const StepId id : ids_of(steps)) {
    const Step& step = steps[id];
    for (const NodeId n : step.nodes) {
      for_each_operand(p[n], [&](const Access& a) {
        if (!step.fused || lives[a.of].first != static_cast<std::int32_t>(id.index())) kept[a.of] = true;
      });
      if (!step.fused) for_each_result(p[n], [&](ValueId v) { kept[v] = true; });
    }
  }
  for (const Access& a : p.outputs())
    if (a.reads()) kept[a.of] = true;
  return kept;
}

Home::In home_of(const Program& p, const Value& value) {
  const bool small = value.spec.nbytes() <= kSmallBytes;
  if (value.from == Value::From::constant) return small ? Home::In::constants : Home::In::borrowed;
  if (value.from == Value::From::argument) return small ? Home::In::arena : Home::In::borrowed;
  if (small) return Home::In::arena;
  const Node& node = p[value.node];
  return as<ReadNode>(node)     ? Home::In::borrowed
         : returns_memory(node) ? Home::In::returned
                                : Home::In::arena;
}

// Whether a variable changes after the value was read, up to and including its last use.
bool changes_while_used(const std::vector<std::int32_t>& changes, const Life& life) {
  const auto next = std::upper_bound(changes.begin(), changes.end(), life.first);
  return next != changes.end() && *next <= life.last;
}

}   // namespace

IdVector<ValueId, Home> find_homes(const Program& p, const Steps& steps,
                                   const IdVector<ValueId, Life>& lives) {
  IdVector<ValueId, Home> homes(p.values().size());
  const IdVector<ValueId, bool> kept = find_kept(p, steps, lives);
  for (const ValueId v : ids_of(homes))
    if (kept[v] && lives[v].is_used()) homes[v].in = home_of(p, p[v]);
  for (const Access& a : p.outputs())
    if (a.reads() && p.is_all(a) && homes[a.of].in == Home::In::arena && p[a.of].from == Value::From::node &&
        p[a.of].spec.nbytes() > kSmallBytes)
      homes[a.of].in = Home::In::output;

  std::vector<std::int32_t> changes;   // steps that change variables, in order
  for (const StepId s : ids_of(steps))
    if (changes_variables(p[steps[s].nodes[0]])) changes.push_back(static_cast<std::int32_t>(s.index()));
  for (const ValueId v : ids_of(homes))
    if (const NodeId n = p[v].node; n && as<ReadNode>(p[n]))
      homes[v].held = changes_while_used(changes, lives[v]);
  return homes;
}

}   // namespace tapedeck::compiled
