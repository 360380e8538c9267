// In: a program. Out: the same without those sums of many terms that groups can compute.
#include "compile/rewrite/sums.h"

#include <algorithm>
#include <utility>

#include "compile/fuse/passes.h"
#include "core/format.h"

namespace tapedeck::compiled {
namespace {

const Op& addition() {
  static const Op* const add = [] {
    for (const OpFamily& family : op_families())
      for (const Op& op : family.ops)
        if (op.meaning == Meaning::add) return &op;
    throw InternalError("compile: no op means add");
  }();
  return *add;
}

bool is_split(const Program& p, const Passes& passes, const Node& node) {
  const OpNode* n = as<OpNode>(node);
  if (!n || n->op->meaning != Meaning::add_n || n->in.size() < 2) return false;
  const Spec& spec = p[n->out[0]].spec;
  const Pass pass = {spec.dtype, spec.shape.size()};
  return std::all_of(n->in.begin(), n->in.end(), [&](const Access& term) {
    const Value& value = p[term.of];
    return value.from == Value::From::constant || passes.is_elementwise_result(pass, term.of);
  });
}

/// A sum, while its terms are defined one after the other.
struct Sum {
  OpNode node;
  Access so_far;
  std::size_t next = 1;   // term
};

class Splitter {
 public:
  Splitter(Program& to, std::vector<Sum> sums) : p_(to), sums_(std::move(sums)) {}

  // Adds what is there; called after each node.
  void advance() {
    for (Sum& s : sums_)
      while (s.next < s.node.in.size() && is_there(s.so_far) && is_there(s.node.in[s.next]))
        add_term(s);
  }

 private:
  bool is_there(const Access& a) const { return p_[a.of].from != Value::From::nothing; }
  void add_term(Sum& s) {
    const ValueId result = s.node.out[0];
    const bool last = s.next + 1 == s.node.in.size();
    const ValueId sum = last ? result : p_.promise(p_[result].spec);
    p_.define(OpNode{.op = &addition(),
                     .map = addition().forward.loops,
                     .in = {s.so_far, s.node.in[s.next++]},
                     .out = {sum}});
    s.so_far = p_.all_of(sum);
  }

  Program& p_;
  std::vector<Sum> sums_;
};

}   // namespace

Program with_sums_of_two(Program p) {
  const auto is_sum = [](const Node& node) {
    const OpNode* n = as<OpNode>(node);
    return n && n->op->meaning == Meaning::add_n;
  };
  if (std::none_of(p.nodes().begin(), p.nodes().end(), is_sum)) return p;
  const Passes passes(p);
  IdVector<NodeId, bool> split(p.size());
  std::vector<Sum> sums;
  for (const NodeId id : ids_of(p.nodes()))
    if ((split[id] = is_split(p, passes, p[id]))) {
      const OpNode& n = std::get<OpNode>(p[id]);
      sums.push_back({n, n.in[0]});
    }
  if (sums.empty()) return p;
  auto [rewritten, nodes] = std::move(p).take_apart();
  Splitter splitter(rewritten, std::move(sums));
  for (const NodeId id : ids_of(nodes)) {
    if (!split[id]) rewritten.define(std::move(nodes[id]));
    splitter.advance();
  }
  return std::move(rewritten);
}

}   // namespace tapedeck::compiled
