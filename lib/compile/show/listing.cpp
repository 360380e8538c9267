// In: a plan. Out: a table, a graph or a list of its nodes in the order in which they run.
#include "compile/show/listing.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "compile/record/inner.h"
#include "core/format.h"
#include "debug/text.h"
#include "tape/variable.h"

namespace tapedeck::compiled {

std::string_view memory_of(const Plan& plan, ValueId v) {
  switch (plan.homes[v].in) {
    case Home::In::registers:
      return "registers";
    case Home::In::arena:
    case Home::In::constants:
      return "arena";
    case Home::In::borrowed:
      return "the variable's";
    case Home::In::output:
      return "result";
    case Home::In::returned:
      return "its own";
  }
  return "";
}

std::string range_of(const Plan& plan, const Access& a) {
  if (a.size() == plan.program[a.of].spec.shape.size()) return fmt::format(" {}", a.spec);
  return fmt::format("[{}:{}] {}", a.first, a.first + a.size(), a.spec);
}

namespace {

// The operands, results and steps of nodes.
class PlanTable {
 public:
  explicit PlanTable(const Plan& plan) : plan_(plan) {
    lines_.push_back({"#", "node", "inputs", "outputs", "memory"});
    for (std::size_t i = 0; i < plan.program.arguments().size(); ++i)
      name(plan.program.arguments()[i], fmt::format("argument {}", i));
    int group = 0;
    for (const Step& step : plan.steps) {
      if (step.fused) ++group;
      for (const NodeId n : step.nodes)
        add(plan.program[n], step.fused ? fmt::format("group {}", group) : "");
    }
  }
  std::string text() const { return text_table(lines_) + inner_; }

 private:
  void name(ValueId v, std::string text) { names_.try_emplace(v, std::move(text)); }
  // "#2 f32[3]", "#2[4:7] f32[3]"
  std::string operand(const Access& a) const {
    const auto known = names_.find(a.of);
    return (known == names_.end() ? "constant" : known->second) + range_of(plan_, a);
  }
  void add(const Node& node, const std::string& group) {
    const std::size_t number = lines_.size() - 1;
    TextLine line = {fmt::format("{}{}{}", group, group.empty() ? "" : "  ", number), name_of(node)};
    std::size_t operands = 0;
    for_each_operand(node, [&](const Access& a) {
      if (operands++ < kOperands) line[2] += (line[2].empty() ? "" : ", ") + operand(a);
    });
    if (operands > kOperands) line[2] += fmt::format(" and {} more", operands - kOperands);
    std::vector<ValueId> results;
    for_each_result(node, [&](ValueId v) { results.push_back(v); });
    std::set<std::string_view> memory;
    for (std::size_t k = 0; k < results.size(); ++k) {
      line[3] += fmt::format("{}{}", k ? ", " : "", plan_.program[results[k]].spec);
      memory.insert(memory_of(plan_, results[k]));
      name(results[k], results.size() > 1 ? fmt::format("#{}:{}", number, k) : fmt::format("#{}", number));
    }
    for (const std::string_view m : memory)
      line[4] += fmt::format("{}{}", line[4].empty() ? "" : ", ", m);
    lines_.push_back(std::move(line));
    if (const OpNode* n = as<OpNode>(node)) add_inner(*n, number);
  }
  void add_inner(const OpNode& n, std::size_t number) {
    for (const auto& programs : {programs_of_branch(n), programs_of_loop(n)})
      for (const InnerProgram& p : programs) {
        inner_ += fmt::format("node {}: {}\n", number, p.what);
        std::istringstream table(table_of(p.plan));
        for (std::string line; std::getline(table, line);)
          inner_ += "  " + line + "\n";
      }
  }

  static constexpr std::size_t kOperands = 6;   // the most operands that a line shows
  const Plan& plan_;
  std::vector<TextLine> lines_;
  std::map<ValueId, std::string> names_;
  std::string inner_;   // the tables of the programs of branches and loops
};

std::string names_of(const Plan& plan, const Step& step) {
  constexpr std::size_t kNames = 3;
  std::string all;
  for (std::size_t i = 0; i < std::min(step.nodes.size(), kNames); ++i)
    all += (i ? "+" : "") + name_of(plan.program[step.nodes[i]]);
  return all + (step.nodes.size() > kNames ? "+…" : "");
}

class PlanGraph {
 public:
  explicit PlanGraph(const Plan& plan) : plan_(plan) {
    for (const Access& a : plan.program.outputs())
      if (a.reads()) results_.insert(a.of);
    for (std::size_t i = 0; i < plan.program.arguments().size(); ++i)
      add_argument(plan.program.arguments()[i], i);
    int group = 0;
    for (const Step& step : plan.steps) {
      if (step.fused)
        nodes_ +=
            fmt::format("  subgraph cluster_{0} {{\n  label=\"group {0}\"; color=\"#bbbbbb\";\n", ++group);
      for (const NodeId n : step.nodes)
        add_node(n);
      if (step.fused) nodes_ += "  }\n";
    }
  }
  std::string text(std::string_view label) const { return digraph("program", label, nodes_ + edges_); }

 private:
  void add_argument(ValueId v, std::size_t i) {
    if (names_.contains(v)) return;
    names_[v] = fmt::format("argument{}", i);
    nodes_ += fmt::format("  {} [label={}, {}];\n", names_[v],
                          in_quotes(fmt::format("argument {}\n{}", i, plan_.program[v].spec)), kSourceStyle);
  }
  void add_node(NodeId n) {
    const Node& node = plan_.program[n];
    const std::string name = fmt::format("node{}", n.index());
    std::string label = name_of(node);
    bool result = false;
    for_each_result(node, [&](ValueId v) {
      names_[v] = name;
      label += fmt::format("\n{}", plan_.program[v].spec);
      result |= results_.contains(v);
    });
    const bool variable = as<ReadNode>(node) || as<StoreNode>(node);
    const std::string_view style = variable ? kVariableStyle : result ? kResultStyle : "";
    nodes_ += fmt::format("  {} [label={}{}{}];\n", name, in_quotes(label), style.empty() ? "" : ", ", style);
    for_each_operand(node, [&](const Access& a) {
      const auto from = names_.find(a.of);   // a value without a name is a constant
      if (from != names_.end()) edges_ += fmt::format("  {} -> {};\n", from->second, name);
    });
  }

  const Plan& plan_;
  std::set<ValueId> results_;
  std::map<ValueId, std::string> names_;   // the names of the nodes that define values
  std::string nodes_, edges_;
};

}   // namespace

std::vector<ReplayedStep> steps_of(const Plan& plan, std::string_view function) {
  std::vector<ReplayedStep> all;
  std::size_t group = 0;
  for (const Step& step : plan.steps) {
    const Node& node = plan.program[step.nodes[0]];
    std::vector<std::pair<ValueId, std::int64_t>> reads, writes;   // values, and the bytes of each
    const auto whole = [&](ValueId v) { return std::pair(v, plan.program[v].spec.nbytes()); };
    if (step.fused) {
      for (const ValueId v : plan.groups[group].reads())
        reads.push_back(whole(v));
      for (const ValueId v : plan.groups[group].writes())
        writes.push_back(whole(v));
    } else {
      for_each_operand(node, [&](const Access& a) { reads.emplace_back(a.of, a.spec.nbytes()); });
      for_each_result(node, [&](ValueId v) { writes.push_back(whole(v)); });
    }
    if (as<ReadNode>(node)) writes = {};                       // the memory of the variable is read in place
    if (as<SelectNode>(node) && !step.fused) reads = writes;   // only the selected elements are read
    if (as<StoreNode>(node)) writes = reads;
    const auto bytes_of = [](const auto& list) {
      std::int64_t bytes = 0;
      for (const auto& [v, n] : list)
        bytes += n;
      return bytes;
    };
    if (step.fused) ++group;
    all.push_back({fmt::format("{}: {}{}", function, step.fused ? "group " : "", names_of(plan, step)), false,
                   bytes_of(reads), bytes_of(writes)});
    if (!writes.empty()) all.back().first = plan.program[writes[0].first].spec;
  }
  return all;
}

std::string table_of(const Plan& plan) { return PlanTable(plan).text(); }
std::string graph_of(const Plan& plan, std::string_view label) { return PlanGraph(plan).text(label); }

}   // namespace tapedeck::compiled
