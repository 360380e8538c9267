// In: a program. Out: its steps. Nodes of one level, dtype and size form a group: the level of a node is
// above those of all that it reads through memory, so groups depend on lower levels alone. Of large nodes,
// those that have no operand in common are groups of their own, which run where their results are needed.
#include "program/schedule.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

#include "program/pass.h"

namespace tapedeck::program {
namespace {

using NodeId = std::int32_t;

class Scheduler {
 public:
  Scheduler(const Program& p, const std::vector<bool>& live) : p_(p) {
    reads_.resize(p.nodes.size());
    level_.resize(p.nodes.size());
    for (std::size_t n = 0; n < p.nodes.size(); ++n) {
      if (!live[n]) continue;
      order_.push_back(static_cast<NodeId>(n));
      find_reads(static_cast<NodeId>(n));
    }
  }

  std::vector<ProgramStep> run() {
    raise();
    sink();
    connect();
    make_steps();
    return sorted();
  }

 private:
  struct Read {
    NodeId node;
    bool block_by_block;   // in the same group; else through memory, when its step is over
    bool order = false;    // nothing is read: it comes first
  };

  static std::size_t at(NodeId n) { return static_cast<std::size_t>(n); }
  const Node& node(NodeId n) const { return p_.nodes[at(n)]; }

  void find_reads(NodeId n) {
    std::vector<Read>& reads = reads_[at(n)];
    for (const ValueId v : node(n).in) {
      if (v == kNoValue) continue;
      const Value& value = p_.value(elements_of(p_, v).value);
      if (value.from != Value::From::node) continue;
      reads.push_back({value.at, is_read_block_by_block(p_, node(n), v)});
    }
    using Kind = Node::Kind;
    if (const Kind kind = node(n).kind; kind != Kind::read && kind != Kind::store && kind != Kind::action)
      return;
    if (last_of_variables_ >= 0) reads.push_back({last_of_variables_, false, true});
    last_of_variables_ = n;
  }

  // The lowest level that each node can have.
  void raise() {
    for (const NodeId n : order_)
      for (const Read& r : reads_[at(n)])
        level_[at(n)] = std::max(level_[at(n)], level_[at(r.node)] + (r.block_by_block || r.order ? 0 : 1));
  }

  // What is needed later only is computed with those that need it.
  void sink() {
    constexpr int never = 1 << 30;
    std::vector<int> latest(p_.nodes.size(), never);
    for (const ValueId v : p_.outputs)
      if (v != kNoValue)
        if (const Value& value = p_.value(elements_of(p_, v).value); value.from == Value::From::node)
          latest[at(value.at)] = level_[at(value.at)];
    for (auto n = order_.rbegin(); n != order_.rend(); ++n) {
      if (node(*n).fused && is_per_element(*n) && latest[at(*n)] != never) level_[at(*n)] = latest[at(*n)];
      for (const Read& r : reads_[at(*n)])
        latest[at(r.node)] =
            std::min(latest[at(r.node)], level_[at(*n)] - (r.block_by_block || r.order ? 0 : 1));
    }
  }
  bool is_per_element(NodeId n) const {
    const auto& out = node(n).out;
    return std::all_of(out.begin(), out.end(), [&](ValueId v) {
      return v == kNoValue || is_elementwise_result(p_, *node(n).fused, v);
    });
  }

  // Nodes of a level that read the same elements, or each other's, belong together; so do all small ones.
  void connect() {
    constexpr std::int64_t large = 1 << 15;   // bytes of a result: what a core's first cache holds
    const auto is_small = [&](const NodePass& pass) { return pass.n * size_of(pass.dtype) < large; };
    next_.resize(p_.nodes.size());
    std::iota(next_.begin(), next_.end(), 0);
    std::map<std::pair<Pass, ValueId>, NodeId> readers;
    const auto join = [&](NodeId n, ValueId v) {
      const NodeId first = readers.try_emplace({pass_of(n), v}, n).first->second;
      next_[at(group_of(n))] = group_of(first);
    };
    for (const NodeId n : order_) {
      if (!node(n).fused) continue;
      if (is_small(*node(n).fused)) {
        join(n, kNoValue);
        continue;
      }
      for (const auto* values : {&node(n).in, &node(n).out})
        for (const ValueId v : *values)
          if (v != kNoValue && is_read_in_full(n, v))
            join(n, elements_of(p_, v).first ? v : elements_of(p_, v).value);
    }
  }
  bool is_read_in_full(NodeId n, ValueId v) const {
    return p_.value(v).spec.shape.size() >= node(n).fused->n && !p_.value(elements_of(p_, v).value).uniform;
  }
  // The node that stands for those that belong together.
  NodeId group_of(NodeId n) {
    while (next_[at(n)] != n)
      n = next_[at(n)] = next_[at(next_[at(n)])];
    return n;
  }

  void make_steps() {
    std::vector<bool> computes(p_.nodes.size());
    std::vector<int> members(p_.nodes.size());
    for (const NodeId n : order_) {
      if (!node(n).fused) continue;
      ++members[at(group_of(n))];
      if (node(n).kind != Node::Kind::select && !is_full_sum(p_, node(n))) computes[at(group_of(n))] = true;
    }
    std::map<NodeId, std::size_t> groups;
    step_of_.resize(p_.nodes.size());
    for (const NodeId n : order_) {
      std::size_t s = steps_.size();
      // Copies and sums alone are faster one by one, and so is a node that nothing is fused with.
      const bool fused = node(n).fused && computes[at(group_of(n))] && members[at(group_of(n))] > 1;
      if (fused) s = groups.try_emplace(group_of(n), s).first->second;
      if (s == steps_.size()) steps_.push_back({{}, fused});
      steps_[s].nodes.push_back(n);
      step_of_[at(n)] = s;
    }
  }
  using Pass = std::tuple<int, DType, std::int64_t>;
  Pass pass_of(NodeId n) const { return {level_[at(n)], node(n).fused->dtype, node(n).fused->n}; }

  // The steps in recorded order where nothing forbids it.
  std::vector<ProgramStep> sorted() {
    std::vector<std::vector<std::size_t>> next(steps_.size());
    std::vector<int> waits(steps_.size());
    for (const NodeId n : order_)
      for (const Read& r : reads_[at(n)])
        if (const std::size_t from = step_of_[at(r.node)], to = step_of_[at(n)]; from != to)
          next[from].push_back(to), ++waits[to];
    using Ready = std::pair<NodeId, std::size_t>;   // the last node of a step, and the step
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (std::size_t s = 0; s < steps_.size(); ++s)
      if (waits[s] == 0) ready.emplace(steps_[s].nodes.back(), s);
    std::vector<ProgramStep> sorted;
    while (!ready.empty()) {
      const std::size_t s = ready.top().second;
      ready.pop();
      sorted.push_back(std::move(steps_[s]));
      for (const std::size_t t : next[s])
        if (--waits[t] == 0) ready.emplace(steps_[t].nodes.back(), t);
    }
    return sorted;
  }

  const Program& p_;
  std::vector<NodeId> order_;
  std::vector<std::vector<Read>> reads_;
  std::vector<int> level_;
  std::vector<NodeId> next_;   // of each node one that belongs to it, or itself
  std::vector<std::size_t> step_of_;
  std::vector<ProgramStep> steps_;
  NodeId last_of_variables_ = -1;
};

}   // namespace

std::vector<ProgramStep> schedule(const Program& p, const std::vector<bool>& live) {
  return Scheduler(p, live).run();
}

}   // namespace tapedeck::program
