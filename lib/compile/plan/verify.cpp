// In: a plan. Out: the first rule that it breaks. The verifier does not use the results of the planner's
// analyses, such as the lives of values.
#include "compile/plan/verify.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory_resource>

#include "compile/fuse/verify.h"
#include "compile/ir/broken_rule.h"
#include "core/format.h"
#include "tape/variable.h"

namespace tapedeck::compiled {
namespace {

std::int64_t bytes_with_padding(const Spec& s) { return (s.nbytes() + 63) / 64 * 64 + 64; }

class PlanVerifier {
 public:
  explicit PlanVerifier(const Plan& plan)
      : plan_(plan), p_(plan.program), uses_(p_.values().size(), 0), is_there_(p_.values().size(), 0) {}

  void run() {
    count_uses();
    place_constants();
    for (const ValueId v : ids_of(p_.values()))
      if (p_[v].from == Value::From::argument) give(v, Home::In::borrowed);
    std::size_t group = 0;
    for (const StepId s : ids_of(plan_.steps)) {
      const Step& step = plan_.steps[s];
      if (step.nodes.empty()) broken("a step has no nodes");
      at_ = step.nodes[0];
      if (step.fused)
        run_group(step, group++);
      else
        run_node(step);
    }
    at_ = {};
    assign(false);
    for (const Access& a : p_.outputs())
      if (a.reads()) require(a);
    for (const NodeId n : ids_of(p_.nodes()))
      if (must_run(p_, p_[n]) && !done_[n]) {
        at_ = n;
        broken("it must run, but is in no step");
      }
  }
  std::string where() const { return at_ ? fmt::format("node {}, {}: ", at_.index(), name_of(p_[at_])) : ""; }

 private:
  const Home& home(ValueId v) const { return plan_.homes[v]; }

  // Counts the reads of each value. A tensor that a kernel returns may share memory with the operands, which
  // must then be kept.
  void count_uses() {
    done_.resize(p_.size()), planned_.resize(p_.size());
    for (const Step& step : plan_.steps)
      for (const NodeId n : step.nodes) {
        planned_[n] = true;
        const OpNode* op = as<OpNode>(p_[n]);
        const bool aliases = as<ActionNode>(p_[n]) || (op && op->op->forward.outputs == Outputs::by_kernel);
        for_each_operand(p_[n], [&](const Access& a) { uses_[a.of] += aliases ? 2 : 1; });
        if (const StoreNode* store = as<StoreNode>(p_[n])) ++uses_[store->in.of];
      }
    for (const Access& a : p_.outputs())
      if (a.reads()) ++uses_[a.of];
  }

  void place_constants() {
    std::map<std::int64_t, std::int64_t> taken;   // from, to
    for (const ValueId v : ids_of(p_.values())) {
      if (home(v).in == Home::In::constants) {
        const std::int64_t from = home(v).offset, to = from + bytes_with_padding(p_[v].spec);
        if (p_[v].from != Value::From::constant)
          broken("value {} is stored among the constants, but is not one", v.index());
        if (from < 0 || to > plan_.constant_bytes)
          broken("constant {} is stored outside the memory of constants", v.index());
        const auto after = taken.lower_bound(from);
        if ((after != taken.end() && after->first < to) ||
            (after != taken.begin() && std::prev(after)->second > from))
          broken("constant {} overlaps another one", v.index());
        taken[from] = to;
      }
      if (p_[v].from == Value::From::constant && home(v).in != Home::In::registers) {
        if (home(v).in != Home::In::constants && home(v).in != Home::In::borrowed)
          broken("constant {} is stored in memory that is written", v.index());
        is_there_[v] = true;
      }
    }
  }

  // A value that no kernel computes: an argument, a constant, or a variable that is read. The replay copies
  // it to the arena, or leaves it in its own memory, which is `there`.
  void give(ValueId v, Home::In there) {
    const Home::In in = home(v).in;
    if (in == Home::In::registers) return;   // nothing reads it
    if (in == Home::In::arena) return occupy(v, {});
    if (in != there) broken("value {} is expected in memory where it is not", v.index());
    is_there_[v] = true;
  }
  // A kernel computes v. `into`: the value that the kernel adds to in place, if it has the same home.
  void compute(ValueId v, ValueId into = {}) {
    switch (home(v).in) {
      case Home::In::arena:
        return occupy(v, into);
      case Home::In::output:
        if (!is_result(v)) broken("value {} is stored in the memory of a result, but is not one", v.index());
        is_there_[v] = true;
        return;
      default:
        broken("value {} is written to memory that the program does not own", v.index());
    }
  }
  bool is_result(ValueId v) const {
    return std::any_of(p_.outputs().begin(), p_.outputs().end(),
                       [&](const Access& a) { return a.of == v && a.first == 0 && a.spec == p_[v].spec; });
  }
  void occupy(ValueId v, ValueId into) {
    const std::int64_t from = home(v).offset, to = from + bytes_with_padding(p_[v].spec);
    if (from < 0 || from % 64 != 0 || to > plan_.arena_bytes)
      broken("value {} is stored outside the arena", v.index());
    auto tag = arena_.upper_bound(from);
    if (tag != arena_.begin() && std::prev(tag)->second.to > from) --tag;
    while (tag != arena_.end() && tag->first < to) {
      const ValueId old = tag->second.value;
      const bool is_sum =
          into && old == into && tag->first == from && tag->second.to == to && uses_[old] == 1;
      if (uses_[old] > 0 && !is_sum)
        broken("value {} is written over value {}, which is still needed", v.index(), old.index());
      is_there_[old] = false;
      tag = arena_.erase(tag);
    }
    arena_[from] = {to, v};
    is_there_[v] = true;
  }

  void require(const Access& a) const {
    if (!is_there_[a.of]) broken("value {} is read where it is not stored", a.of.index());
  }
  void require_kept(ValueId v) const {
    if (!is_there_[v]) broken("value {} is read from memory, but is not stored there", v.index());
  }

  void run_node(const Step& step) {
    if (step.nodes.size() != 1) broken("a step of several nodes must be a group");
    const Node& node = p_[at_];
    for_each_operand(node, [&](const Access& a) { require(a); });
    const OpNode* op = as<OpNode>(node);
    if (uses_variables(node)) assign(true), in_order();
    if (const ReadNode* n = as<ReadNode>(node)) {
      in_order();
      give(n->out, Home::In::borrowed);
      if (home(n->out).in == Home::In::borrowed && !home(n->out).held)
        borrowed_reads_.push_back({n->cell.get(), n->out});
    } else if (const StoreNode* n = as<StoreNode>(node)) {
      in_order();
      pending_.push_back(n);
    } else if (as<ActionNode>(node) || (op && op->op->forward.outputs == Outputs::by_kernel)) {
      for_each_result(node, [&](ValueId v) { give(v, Home::In::returned); });
    } else {
      const ProductSum* sum = as<ProductSum>(node);
      const ValueId into = sum && sum->a().of != sum->before().of && sum->b().of != sum->before().of
                               ? sum->before().of
                               : ValueId();
      for_each_result(node, [&](ValueId v) { compute(v, into); });
    }
    finish(at_);
  }

  void run_group(const Step& step, std::size_t number) {
    if (number >= plan_.groups.size()) broken("its group is missing");
    const Group& group = plan_.groups[number];
    if (const auto wrong = verify(p_, *plan_.passes, step, group.code())) broken("{}", *wrong);
    if (group.scratch_bytes() > plan_.scratch_bytes)
      broken("its group needs more scratch memory than the plan has");
    const GroupCode& code = group.code();
    for (const auto* list : {&code.singles, &code.streams, &code.bytes, &code.viewed})
      for (const Elements& e : *list)
        require_kept(e.of);
    std::vector<ValueId> written = code.results;
    written.insert(written.end(), code.bool_results.begin(), code.bool_results.end());
    for (const GroupCode::Sum& s : code.sums)
      if (s.to) written.push_back(s.to);
    for (const ValueId v : written)
      compute(v);
    for (const NodeId n : step.nodes) {
      at_ = n;
      for_each_result(p_[n], [&](ValueId v) {
        if (home(v).in != Home::In::registers &&
            std::find(written.begin(), written.end(), v) == written.end())
          broken("its result is not written");
      });
      finish(n);
    }
  }

  void finish(NodeId n) {
    if (done_[n]) broken("it runs twice");
    done_[n] = true;
    check_effects(n);
    for_each_operand(p_[n], [&](const Access& a) { --uses_[a.of]; });
  }
  // Nodes that must run do so in recorded order, and a node that acts runs after all earlier nodes that may
  // throw.
  void check_effects(NodeId n) {
    if (as<StoreNode>(p_[n])) return;
    if (must_run(p_, p_[n])) {
      if (last_that_must_run_ && n < last_that_must_run_)
        broken("it runs after node {}", last_that_must_run_.index());
      last_that_must_run_ = n;
    }
    if (may_throw(p_[n]) && last_action_ && n < last_action_)
      broken("it may throw, and runs after the action of node {}", last_action_.index());
    if (may_throw(p_[n]) && (!last_that_may_throw_ || last_that_may_throw_ < n)) last_that_may_throw_ = n;
    if (!acts(p_[n])) return;
    if (last_that_may_throw_ && n < last_that_may_throw_)
      broken("it acts after node {}, which may throw", last_that_may_throw_.index());
    for (std::size_t k = last_action_ ? last_action_.index() + 1 : 0; k < n.index(); ++k)
      if (const NodeId before(k); may_throw(p_[before]) && planned_[before] && !done_[before])
        broken("it acts before node {}, which may throw", k);
    last_action_ = n;
  }
  // Nodes that read or change variables run in recorded order.
  void in_order() {
    if (last_of_variables_ && at_ < last_of_variables_)
      broken("it runs after node {}", last_of_variables_.index());
    last_of_variables_ = at_;
  }

  // Variables are assigned. Memory that was read from them without being held may change.
  void assign(bool all) {
    std::erase_if(borrowed_reads_, [&](const auto& read) {
      const bool changes = all || std::any_of(pending_.begin(), pending_.end(), [&](const StoreNode* s) {
                             return s->cell.get() == read.first;
                           });
      if (changes) is_there_[read.second] = false;
      return changes;
    });
    for (const StoreNode* s : pending_) {
      require(s->in);
      --uses_[s->in.of];
    }
    pending_.clear();
  }

  struct Tag {
    std::int64_t to;
    ValueId value;
  };
  const Plan& plan_;
  const Program& p_;
  IdVector<ValueId, int> uses_;
  IdVector<ValueId, std::uint8_t> is_there_;
  IdVector<NodeId, std::uint8_t> done_, planned_;
  // libstdc++'s pool resources crash if memory runs out.
  std::pmr::monotonic_buffer_resource memory_{1 << 12};
  std::pmr::map<std::int64_t, Tag> arena_{&memory_};   // by offset
  std::vector<std::pair<const detail::VariableCell*, ValueId>> borrowed_reads_;
  std::vector<const StoreNode*> pending_;
  NodeId at_, last_of_variables_, last_that_must_run_, last_that_may_throw_, last_action_;
};

}   // namespace

std::optional<std::string> verify(const Plan& plan) { return fault_of(PlanVerifier(plan)); }

void report_fault(std::string_view function, std::string_view fault) {
  const std::string text = fmt::format(
      "{}: its program is not used, and the function runs uncompiled: {}; this is a fault of the library, "
      "please report it",
      function, fault);
  if (std::getenv("TAPEDECK_FAULTS_THROW")) throw InternalError(text);
  warn(text);
}

}   // namespace tapedeck::compiled
