// In: a program. Out: its steps. Nodes of one level, dtype and size form a group. The level of a node is
// above those of all nodes whose results it reads through memory, so a group depends on lower levels only.
// Large nodes without a common operand form separate groups, which run where their results are needed.
#include "compile/fuse/schedule.h"

#include <algorithm>
#include <map>
#include <queue>
#include <span>
#include <tuple>

#include "compile/fuse/effects.h"

namespace tapedeck::compiled {
namespace {

class Scheduler {
 public:
  Scheduler(const Program& p, const Passes& passes, const IdVector<NodeId, bool>& live)
      : p_(p), passes_(passes), first_read_(p.size() + 1), level_(p.size()) {
    order_.reserve(p.size());
    reads_.reserve(2 * p.size());
    for (const NodeId n : ids_of(p.nodes())) {
      first_read_[n] = reads_.size();
      if (!live[n]) continue;
      order_.push_back(n);
      find_reads(n);
    }
    first_read_[NodeId(p.size())] = reads_.size();
  }

  Steps run() {
    assign_lowest_levels();
    move_to_readers();
    join_readers();
    make_steps();
    return sorted();
  }

 private:
  struct Read {
    NodeId node;
    bool block_by_block;   // within one group; otherwise through memory, after the step of `node`
    bool order = false;    // nothing is read; `node` only has to run before
  };

  const Node& node(NodeId n) const { return p_[n]; }
  const std::optional<Pass>& pass(NodeId n) const { return passes_[n]; }

  void find_reads(NodeId n) {
    for_each_operand(node(n), [&](const Access& a) {
      if (const NodeId from = p_.node_of(a)) reads_.push_back({from, passes_.is_read_block_by_block(n, a)});
    });
    if (as<ReadNode>(node(n)) || changes_variables(node(n))) {
      come_after(last_of_variables_);
      last_of_variables_ = n;
    }
    find_effects(n);
  }
  // Keeps the order of effects: a replay throws the same first error as the function, after the same actions.
  void find_effects(NodeId n) {
    if (as<StoreNode>(node(n))) return;
    if (must_run(p_, node(n))) {
      come_after(last_that_must_run_);
      last_that_must_run_ = n;
    }
    if (acts(node(n))) {
      for (const NodeId before : throwing_)
        come_after(before);
      throwing_.clear();
      last_action_ = n;
    } else if (may_throw(node(n))) {
      come_after(last_action_);
      throwing_.push_back(n);
    }
  }
  void come_after(NodeId before) {
    if (before) reads_.push_back({before, false, true});
  }
  std::span<const Read> reads(NodeId n) const {
    return std::span(reads_).subspan(first_read_[n], first_read_[NodeId(n.index() + 1)] - first_read_[n]);
  }

  // Assigns each node the lowest level that it can have.
  void assign_lowest_levels() {
    for (const NodeId n : order_)
      for (const Read& r : reads(n))
        level_[n] = std::max(level_[n], level_[r.node] + (r.block_by_block || r.order ? 0 : 1));
  }

  // Moves a node whose results are needed only later to the level of the first reader.
  void move_to_readers() {
    constexpr int never = 1 << 30;
    IdVector<NodeId, int> latest(p_.size(), never);
    for (const Access& a : p_.outputs())
      if (const NodeId n = p_.node_of(a)) latest[n] = level_[n];
    for (auto n = order_.rbegin(); n != order_.rend(); ++n) {
      if (pass(*n) && is_per_element(*n) && latest[*n] != never) level_[*n] = latest[*n];
      for (const Read& r : reads(*n))
        latest[r.node] = std::min(latest[r.node], level_[*n] - (r.block_by_block || r.order ? 0 : 1));
    }
  }
  bool is_per_element(NodeId n) const {
    bool all = true;
    for_each_result(node(n), [&](ValueId v) { all &= passes_.is_elementwise_result(*pass(n), v); });
    return all;
  }

  // Joins nodes of a level that read the same elements or each other's results; and all small nodes.
  void join_readers() {
    constexpr std::int64_t large = 1 << 15;   // bytes of a result: the size of an L1 cache
    const auto is_small = [&](const Pass& pass) { return pass.n * size_of(pass.dtype) < large; };
    next_.resize(p_.size());
    for (const NodeId n : ids_of(next_))
      next_[n] = n;
    std::map<std::tuple<Level, ValueId, std::int64_t>, NodeId> readers;
    const auto join = [&](NodeId n, ValueId v, std::int64_t first) {
      const NodeId other = readers.try_emplace({level_of(n), v, first}, n).first->second;
      next_[group_of(n)] = group_of(other);
    };
    for (const NodeId n : order_) {
      if (!pass(n)) continue;
      if (is_small(*pass(n))) {
        join(n, {}, 0);
        continue;
      }
      for_each_operand(node(n), [&](const Access& a) {
        if (a.size() >= pass(n)->n && !passes_.is_uniform(a.of)) join(n, a.of, a.first);
      });
      for_each_result(node(n), [&](ValueId v) {
        if (p_[v].spec.shape.size() >= pass(n)->n) join(n, v, 0);
      });
    }
  }
  // The representative of the set of joined nodes.
  NodeId group_of(NodeId n) {
    while (next_[n] != n)
      n = next_[n] = next_[next_[n]];
    return n;
  }

  void make_steps() {
    IdVector<NodeId, bool> computes(p_.size());
    IdVector<NodeId, int> members(p_.size());
    for (const NodeId n : order_) {
      if (!pass(n)) continue;
      ++members[group_of(n)];
      if (!as<SelectNode>(node(n)) && !is_full_sum(p_, node(n))) computes[group_of(n)] = true;
    }
    IdVector<NodeId, StepId> groups(p_.size());
    step_of_.resize(p_.size());
    for (const NodeId n : order_) {
      // A group needs two nodes, and one that computes: mere copies and sums are faster one by one.
      const bool fused = pass(n) && computes[group_of(n)] && members[group_of(n)] > 1;
      StepId step = fused ? groups[group_of(n)] : StepId();
      if (!step) step = steps_.push_back({{}, fused});
      if (fused) groups[group_of(n)] = step;
      steps_[step].nodes.push_back(n);
      step_of_[n] = step;
    }
  }
  using Level = std::tuple<int, DType, std::int64_t>;
  Level level_of(NodeId n) const { return {level_[n], pass(n)->dtype, pass(n)->n}; }

  // Sorts the steps topologically, in recorded order as far as possible.
  Steps sorted() {
    IdVector<StepId, int> waits(steps_.size());
    // waiting[first[s]] to waiting[first[s + 1]]: the steps that wait for step s, once per read.
    IdVector<StepId, std::size_t> first(steps_.size() + 1);
    const auto for_each_wait = [&](const auto& f) {
      for (const NodeId n : order_)
        for (const Read& r : reads(n))
          if (const StepId from = step_of_[r.node], to = step_of_[n]; from != to) f(from, to);
    };
    for_each_wait([&](StepId from, StepId to) { ++first[from], ++waits[to]; });
    std::size_t end = 0;
    for (std::size_t& f : first)
      f = end += f;
    std::vector<StepId> waiting(end);
    for_each_wait([&](StepId from, StepId to) { waiting[--first[from]] = to; });
    using Ready = std::pair<NodeId, StepId>;   // the last node of a step, and the step
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (const StepId s : ids_of(steps_))
      if (waits[s] == 0) ready.emplace(steps_[s].nodes.back(), s);
    Steps sorted;
    while (!ready.empty()) {
      const StepId s = ready.top().second;
      ready.pop();
      sorted.push_back(std::move(steps_[s]));
      for (std::size_t k = first[s]; k < first[StepId(s.index() + 1)]; ++k)
        if (const StepId t = waiting[k]; --waits[t] == 0) ready.emplace(steps_[t].nodes.back(), t);
    }
    return sorted;
  }

  const Program& p_;
  const Passes& passes_;
  std::vector<NodeId> order_;
  std::vector<Read> reads_;   // the reads of all nodes, concatenated
  IdVector<NodeId, std::size_t> first_read_;
  IdVector<NodeId, int> level_;
  IdVector<NodeId, NodeId> next_;   // a union-find forest: the parent of each node
  IdVector<NodeId, StepId> step_of_;
  Steps steps_;
  NodeId last_of_variables_, last_that_must_run_, last_action_;
  std::vector<NodeId> throwing_;   // nodes that may throw, since the last action
};

}   // namespace

Steps schedule(const Program& p, const Passes& passes, const IdVector<NodeId, bool>& live) {
  return Scheduler(p, passes, live).run();
}

}   // namespace tapedeck::compiled
