// In: a plan. Out: a table, a graph or a list of its nodes in the order in which they run.
#include "program/listing.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/format.h"
#include "debug/text.h"
#include "tape/variable.h"

namespace tapedeck::program {
namespace {

using NodeId = std::int32_t;

const Node& node_of(const Plan& plan, NodeId n) { return plan.program.nodes[static_cast<std::size_t>(n)]; }

std::string_view memory_of(const Plan& plan, ValueId v) {
  switch (plan.places[static_cast<std::size_t>(v)].memory) {
    case Memory::none:
      return "registers";
    case Memory::arena:
    case Memory::copied:
      return "arena";
    case Memory::given:
      return "the variable's";
    case Memory::output:
      return "result";
    case Memory::returned:
      return "its own";
  }
  return "";
}

// What nodes read and give, and in which step they run.
class PlanTable {
 public:
  explicit PlanTable(const Plan& plan) : plan_(plan) {
    lines_.push_back({"#", "node", "inputs", "outputs", "memory"});
    for (std::size_t i = 0; i < plan.program.arguments.size(); ++i)
      name(plan.program.arguments[i], fmt::format("argument {}", i));
    int group = 0;
    for (const ProgramStep& step : plan.steps) {
      if (step.fused) ++group;
      for (const NodeId n : step.nodes)
        add(node_of(plan, n), step.fused ? fmt::format("group {}", group) : "");
    }
  }
  std::string text() const { return text_table(lines_); }

 private:
  void name(ValueId v, std::string text) {
    if (v != kNoValue) names_.try_emplace(v, text + fmt::format(" {}", plan_.program.value(v).spec));
  }
  std::string operand(ValueId v) const {
    if (v == kNoValue) return ".";
    if (const auto known = names_.find(v); known != names_.end()) return known->second;
    const Value& value = plan_.program.value(v);
    if (value.from == Value::From::part) return operand(value.whole);
    return fmt::format("constant {}", value.spec);
  }
  void add(const Node& node, const std::string& group) {
    const std::size_t number = lines_.size() - 1;
    TextLine line = {fmt::format("{}{}{}", group, group.empty() ? "" : "  ", number), name_of(node)};
    for (const ValueId v : node.in)
      if (node.kind == Node::Kind::op || v != kNoValue) line[2] += (line[2].empty() ? "" : ", ") + operand(v);
    const bool several =
        std::count_if(node.out.begin(), node.out.end(), [](ValueId v) { return v != kNoValue; }) > 1;
    std::set<std::string_view> memory;
    for (std::size_t k = 0; k < node.out.size(); ++k) {
      const ValueId v = node.out[k];
      if (v == kNoValue || names_.contains(v)) continue;
      line[3] += fmt::format("{}{}", line[3].empty() ? "" : ", ", plan_.program.value(v).spec);
      memory.insert(memory_of(plan_, v));
      name(v, several ? fmt::format("#{}:{}", number, k) : fmt::format("#{}", number));
    }
    for (const std::string_view m : memory)
      line[4] += fmt::format("{}{}", line[4].empty() ? "" : ", ", m);
    lines_.push_back(std::move(line));
  }

  const Plan& plan_;
  std::vector<TextLine> lines_;
  std::map<ValueId, std::string> names_;
};

std::string names_of(const Plan& plan, const ProgramStep& step) {
  constexpr std::size_t kNames = 3;
  std::string all;
  for (std::size_t i = 0; i < std::min(step.nodes.size(), kNames); ++i)
    all += (i ? "+" : "") + name_of(node_of(plan, step.nodes[i]));
  return all + (step.nodes.size() > kNames ? "+…" : "");
}

class PlanGraph {
 public:
  explicit PlanGraph(const Plan& plan) : plan_(plan) {
    for (const ValueId v : plan.program.outputs)
      if (v != kNoValue) results_.insert(elements_of(plan.program, v).value);
    for (std::size_t i = 0; i < plan.program.arguments.size(); ++i)
      add_argument(plan.program.arguments[i], i);
    int group = 0;
    for (const ProgramStep& step : plan.steps) {
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
    if (v == kNoValue || names_.contains(v)) return;
    names_[v] = fmt::format("argument{}", i);
    nodes_ +=
        fmt::format("  {} [label={}, {}];\n", names_[v],
                    quoted(fmt::format("argument {}\n{}", i, plan_.program.value(v).spec)), kSourceStyle);
  }
  void add_node(NodeId n) {
    const Node& node = node_of(plan_, n);
    const std::string name = fmt::format("node{}", n);
    std::string label = name_of(node);
    bool result = false;
    for (const ValueId v : node.out) {
      if (v == kNoValue || names_.contains(v)) continue;
      names_[v] = name;
      label += fmt::format("\n{}", plan_.program.value(v).spec);
      result |= results_.contains(v);
    }
    const bool variable = node.kind == Node::Kind::read || node.kind == Node::Kind::store;
    const std::string_view style = variable ? kVariableStyle : result ? kResultStyle : "";
    nodes_ += fmt::format("  {} [label={}{}{}];\n", name, quoted(label), style.empty() ? "" : ", ", style);
    for (const ValueId v : node.in) {
      if (v == kNoValue) continue;
      const auto from = names_.find(elements_of(plan_.program, v).value);   // not there: a constant
      if (from != names_.end()) edges_ += fmt::format("  {} -> {};\n", from->second, name);
    }
  }

  const Plan& plan_;
  std::set<ValueId> results_;
  std::map<ValueId, std::string> names_;   // of the nodes that give values
  std::string nodes_, edges_;
};

}   // namespace

std::string name_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::op:
    case Node::Kind::select:
      return std::string(node.op->name);
    case Node::Kind::add_product:
      return fmt::format("{}+add", node.op->name);
    case Node::Kind::map:
      return "tangent";
    case Node::Kind::pull:
      return fmt::format("gradient of {}", node.op->name);
    case Node::Kind::pass:
      return node.gradients ? "gradient of map" : "map";
    case Node::Kind::read:
      return fmt::format("read {}", node.cell->name);
    case Node::Kind::store:
      return fmt::format("assign {}", node.cell->name);
    case Node::Kind::action:
      return "action";
  }
  return "";
}

std::vector<ReplayedStep> steps_of(const Plan& plan, std::string_view function) {
  std::vector<ReplayedStep> all;
  std::size_t group = 0, number = 0;
  const auto bytes_of = [&](std::span<const ValueId> values) {
    std::int64_t bytes = 0;
    for (const ValueId v : values)
      if (v != kNoValue) bytes += plan.program.value(v).spec.nbytes();
    return bytes;
  };
  for (const ProgramStep& step : plan.steps) {
    const Node& node = node_of(plan, step.nodes[0]);
    std::span<const ValueId> reads = node.in, writes = node.out;
    if (step.fused) reads = plan.groups[group].reads(), writes = plan.groups[group].writes();
    if (node.kind == Node::Kind::read) writes = {};        // the variable's memory is read where it is
    if (node.kind == Node::Kind::select) reads = writes;   // and no more than these elements
    if (node.kind == Node::Kind::store) writes = reads;
    const std::string place = step.fused ? fmt::format("group {}", ++group) : fmt::format("#{}", number);
    all.push_back({fmt::format("{}: {} {}", function, place, names_of(plan, step)), false, bytes_of(reads),
                   bytes_of(writes)});
    if (const auto first =
            std::find_if(writes.begin(), writes.end(), [](ValueId v) { return v != kNoValue; });
        first != writes.end())
      all.back().first = plan.program.value(*first).spec;
    number += step.nodes.size();
  }
  return all;
}

std::string table_of(const Plan& plan) { return PlanTable(plan).text(); }
std::string graph_of(const Plan& plan, std::string_view label) { return PlanGraph(plan).text(label); }

}   // namespace tapedeck::program
