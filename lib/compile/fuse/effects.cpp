#include "compile/fuse/effects.h"

#include <algorithm>

#include "compile/fuse/fusible.h"

namespace tapedeck::compiled {

bool must_run(const Program& p, const Node& node) {
  if (changes_variables(node)) return true;
  const OpNode* n = as<OpNode>(node);
  if (n && has_effect(*n->op)) return true;
  if (!n || infers_from_shapes(*n) || logic_kernel(*n)) return false;
  const auto is_discrete = [](const Spec& s) { return !is_trainable(s.dtype); };
  return std::any_of(n->in.begin(), n->in.end(), [&](const Access& a) { return is_discrete(a.spec); }) ||
         std::any_of(n->out.begin(), n->out.end(), [&](ValueId v) { return is_discrete(p[v].spec); });
}

bool may_throw(const Node& node) {
  const OpNode* n = as<OpNode>(node);
  return n && !infers_from_shapes(*n) && !logic_kernel(*n);
}

bool acts(const Program& p) {
  return std::any_of(p.nodes().begin(), p.nodes().end(), [](const Node& node) { return acts(node); });
}

bool uses_variables(const Program& p) {
  return std::any_of(p.nodes().begin(), p.nodes().end(),
                     [](const Node& node) { return as<ReadNode>(node) || changes_variables(node); });
}

}   // namespace tapedeck::compiled
