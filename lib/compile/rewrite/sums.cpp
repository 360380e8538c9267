// In: a program. Out: an equivalent one in which sums of many terms that groups can compute are additions of
// two terms.
#include "compile/rewrite/sums.h"

#include <algorithm>
#include <utility>

#include "compile/fuse/fusible.h"

namespace tapedeck::compiled {
namespace {

const Op& addition() {
  static const Op* const add = [] {
    for (const ops::Family& family : ops::families())
      for (const Op* op : family.ops)
        if (op->meaning == Meaning::add) return op;
    throw InternalError("compile: no op means add");
  }();
  return *add;
}

bool is_sum(const Node& node) {
  const OpNode* n = as<OpNode>(node);
  return n && n->op->meaning == Meaning::add_n && n->in.size() > 1;
}
// `sums`: the results of the sums before it that are split.
bool is_split(const Program& p, const Passes& passes, const IdVector<ValueId, bool>& sums, const Node& node) {
  if (!is_sum(node)) return false;
  const OpNode* n = as<OpNode>(node);
  const auto pass_of = [&](ValueId v) { return Pass{p[v].spec.dtype, p[v].spec.shape.size()}; };
  const Pass pass = pass_of(n->out[0]);
  const auto is_computed = [&](const Access& term) {
    return sums[term.of] ? pass_of(term.of) == pass : passes.is_elementwise_result(pass, term.of);
  };
  const auto is_given = [&](const Access& term) {
    const Value::From from = p[term.of].from;
    return from == Value::From::constant || from == Value::From::argument;
  };
  return std::any_of(n->in.begin(), n->in.end(), is_computed) &&
         std::all_of(n->in.begin(), n->in.end(),
                     [&](const Access& term) { return is_computed(term) || is_given(term); });
}

/// A sum that is being split: its additions are defined as soon as their terms are.
struct Sum {
  OpNode node;
  Access so_far;
  std::size_t next = 1;   // the next term to add
};

class Splitter {
 public:
  Splitter(Program& to, std::vector<Sum> sums)
      : p_(to), sums_(std::move(sums)), waiting_(p_.values().size()) {
    for (Sum& s : sums_)
      wait(s);
    advance();
  }

  // Defines the additions that were waiting for this value.
  void advance(ValueId v) {
    defined_.push_back(v);
    advance();
  }

 private:
  // No recursion, since a sum may complete a sum that completes another one, any number of times.
  void advance() {
    while (!defined_.empty()) {
      const ValueId v = defined_.back();
      defined_.pop_back();
      for (Sum* const s : std::exchange(waiting_[v], {}))
        wait(*s);
    }
  }
  bool is_there(const Access& a) const { return p_[a.of].from != Value::From::nothing; }
  void wait(Sum& s) {
    while (is_there(s.so_far) && is_there(s.node.in[s.next]))
      if (add_term(s)) return;
    waiting_[is_there(s.so_far) ? s.node.in[s.next].of : s.so_far.of].push_back(&s);
  }
  // Adds the next term. Returns whether it was the last one.
  bool add_term(Sum& s) {
    const ValueId result = s.node.out[0];
    const bool last = s.next + 1 == s.node.in.size();
    const ValueId sum = last ? result : p_.promise(p_[result].spec);
    p_.define(OpNode{.op = &addition(),
                     .map = addition().forward.loops,
                     .in = {s.so_far, s.node.in[s.next++]},
                     .out = {sum}});
    s.so_far = p_.all_of(sum);
    if (last) defined_.push_back(sum);   // which another sum may be waiting for
    return last;
  }

  Program& p_;
  std::vector<Sum> sums_;
  IdVector<ValueId, std::vector<Sum*>> waiting_;   // the sums that wait for a value
  std::vector<ValueId> defined_;                   // for which sums may still be waiting
};

}   // namespace

Program with_sums_of_two(Program p) {
  if (std::none_of(p.nodes().begin(), p.nodes().end(), is_sum)) return p;
  const Passes passes(p);
  IdVector<NodeId, bool> split(p.size());
  IdVector<ValueId, bool> of_split(p.values().size());
  std::vector<Sum> sums;
  for (const NodeId id : ids_of(p.nodes()))
    if ((split[id] = is_split(p, passes, of_split, p[id]))) {
      const OpNode& n = std::get<OpNode>(p[id]);
      of_split[n.out[0]] = true;
      sums.push_back({n, n.in[0]});
    }
  if (sums.empty()) return p;
  auto [rewritten, nodes] = std::move(p).take_apart();
  Splitter splitter(rewritten, std::move(sums));
  std::vector<ValueId> defined;
  for (const NodeId id : ids_of(nodes)) {
    if (split[id]) continue;
    rewritten.define(std::move(nodes[id]));
    for_each_result(rewritten[NodeId(rewritten.size() - 1)], [&](ValueId v) { defined.push_back(v); });
    for (const ValueId v : defined)
      splitter.advance(v);
    defined.clear();
  }
  return std::move(rewritten);
}

}   // namespace tapedeck::compiled
