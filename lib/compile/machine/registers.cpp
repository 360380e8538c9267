// In: code. Out: its order, and registers by linear scan. A value that is spilled is on the stack for its
// whole live range, so that nothing has to be moved where rare code returns.
#include "compile/machine/registers.h"

#include <algorithm>
#include <numeric>

namespace tapedeck::compiled {
namespace {

class RegisterPlanner {
 public:
  RegisterPlanner(const Code& code, const VectorSet& set)
      : code_(code),
        registers_(set.registers - 2),
        uses_(code.nodes.size(), 0),
        begin_(code.nodes.size(), -1),
        last_(code.nodes.size(), -1) {
    arrange();
    const int pressure = assign(1, static_cast<int>(code.nodes.size()));
    // Several vectors at a time hide the latency of instructions. Two are worth some values on the stack, as
    // measured with AVX2.
    const int most_of_four = registers_ / 4, most_of_two = registers_ / 2 + 3;   // live at a time
    plan_.unroll = std::min(code.most_vectors, pressure <= most_of_four  ? 4
                                               : pressure <= most_of_two ? 2
                                                                         : 1);
    assign(plan_.unroll, registers_ / plan_.unroll);
    assign_slots();
    pin_constants();
  }
  RegisterPlan plan() && { return std::move(plan_); }

 private:
  const CodeNode& node(LaneValue v) const { return code_.nodes[v]; }
  std::size_t size() const { return code_.nodes.size(); }
  template <class F> void for_each_operand(LaneValue v, const F& f) const {
    for (int k = 0; k < node(v).operands(); ++k)
      f(node(v).x[k]);
  }

  // A stream is loaded where it is first read, unless only one node reads it, from memory. Results are stored
  // as soon as they are known.
  void arrange() {
    std::vector<std::vector<LaneValue>> stores(size());
    for (LaneValue v = 0; v < size(); ++v) {
      for_each_operand(v, [&](LaneValue x) { ++uses_[x]; });
      if (node(v).op == LaneOp::store) stores[node(v).x[0]].push_back(v);
    }
    std::vector<bool> loaded(size());
    std::vector<LaneValue> rare;
    const auto load = [&](LaneValue x) {
      if (node(x).op != LaneOp::stream || uses_[x] < 2 || loaded[x]) return;
      loaded[x] = true;
      plan_.order.push_back(x);
    };
    for (LaneValue v = 0; v < size(); ++v) {
      const CodeNode& n = node(v);
      if (n.op == LaneOp::store) continue;
      for_each_operand(v, load);
      if (n.op == LaneOp::rarely) {
        plan_.order.insert(plan_.order.end(), rare.begin(), rare.end());
        rare.clear();
      }
      if (!is_leaf(n.op)) (n.region ? rare : plan_.order).push_back(v);
      if (!stores[v].empty()) load(v);
      plan_.order.insert(plan_.order.end(), stores[v].begin(), stores[v].end());
    }
    for (std::size_t i = 0; i < plan_.order.size(); ++i) {
      const LaneValue v = plan_.order[i];
      begin_[v] = static_cast<int>(i);
      for_each_operand(v, [&](LaneValue x) { last_[x] = static_cast<int>(i); });
    }
  }

  // Assigns `count` groups of registers, and returns how many were in use at a time.
  int assign(int unroll, int count) {
    plan_.first_register.assign(size(), -1);
    plan_.slot.assign(size(), -1);
    std::vector<int> free(static_cast<std::size_t>(count));
    std::iota(free.rbegin(), free.rend(), 0);
    active_.clear();
    std::size_t most = 0;
    groups_ = 0;
    for (std::size_t i = 0; i < plan_.order.size(); ++i) {
      const LaneValue v = plan_.order[i];
      const CodeNode& n = node(v);
      int ended = -1;   // a group that an operand leaves
      for_each_operand(v, [&](LaneValue x) {
        if (last_[x] != static_cast<int>(i) || plan_.first_register[x] < 0) return;
        const auto at = std::find(active_.begin(), active_.end(), x);
        if (at == active_.end()) return;   // an operand twice
        active_.erase(at);
        free.push_back(plan_.first_register[x] / unroll);
        if (ended < 0) ended = free.back();
      });
      if (n.op == LaneOp::store || last_[v] < 0) continue;
      if (free.empty() && !spill(v, free, unroll)) continue;
      // Results of these operations are best where an operand was.
      auto at = std::prev(free.end());
      if (n.op == LaneOp::fma || n.op == LaneOp::select || n.op == LaneOp::rarely)
        if (const auto same = std::find(free.begin(), free.end(), ended); same != free.end()) at = same;
      plan_.first_register[v] = *at * unroll;
      groups_ = std::max(groups_, *at + 1);
      free.erase(at);
      active_.push_back(v);
      most = std::max(most, active_.size());
    }
    return static_cast<int>(most);
  }
  // Spills the value with the fewest reads for the length of its live range. Returns false if that is v
  // itself.
  bool spill(LaneValue v, std::vector<int>& free, int unroll) {
    const auto weight = [&](LaneValue x) {
      const double reads = uses_[x] * (node(x).op == LaneOp::stream ? 0.5 : 1);   // it is in memory anyway
      return reads / (last_[x] - begin_[x] + 1);
    };
    const auto least = std::min_element(active_.begin(), active_.end(),
                                        [&](LaneValue x, LaneValue y) { return weight(x) < weight(y); });
    const bool is_v = weight(v) <= weight(*least);
    const LaneValue spilled = is_v ? v : *least;
    if (node(spilled).op != LaneOp::stream) plan_.slot[spilled] = 0;   // which one is chosen later
    if (is_v) return false;
    free.push_back(plan_.first_register[spilled] / unroll);
    plan_.first_register[spilled] = -1;
    active_.erase(least);
    return true;
  }

  // Linear scan over the spilled values.
  void assign_slots() {
    std::vector<int> free;
    for (std::size_t i = 0; i < plan_.order.size(); ++i) {
      const LaneValue v = plan_.order[i];
      for_each_operand(v, [&](LaneValue x) {
        if (last_[x] != static_cast<int>(i) || plan_.slot[x] < 0) return;
        if (std::find(free.begin(), free.end(), plan_.slot[x]) == free.end()) free.push_back(plan_.slot[x]);
      });
      if (plan_.slot[v] < 0) continue;
      if (free.empty()) free.push_back(plan_.slots++);
      plan_.slot[v] = free.back();
      free.pop_back();
    }
  }

  void pin_constants() {
    plan_.pinned.assign(size(), -1);
    std::vector<LaneValue> all;
    for (LaneValue v = 0; v < size(); ++v)
      if (node(v).op == LaneOp::constant || node(v).op == LaneOp::single) all.push_back(v);
    std::stable_sort(all.begin(), all.end(), [&](LaneValue a, LaneValue b) { return uses_[a] > uses_[b]; });
    int next = groups_ * plan_.unroll;
    for (const LaneValue v : all)
      if (next < registers_) plan_.pinned[v] = next++;
  }

  const Code& code_;
  const int registers_;   // for values; the emitter needs the other two
  RegisterPlan plan_;
  std::vector<int> uses_, begin_, last_;   // by value: how often it is read; positions in the order
  std::vector<LaneValue> active_;          // the values in registers
  int groups_ = 0;                         // of registers, that are used at all
};

}   // namespace

RegisterPlan plan_registers(const Code& code, const VectorSet& set) {
  return RegisterPlanner(code, set).plan();
}

}   // namespace tapedeck::compiled
