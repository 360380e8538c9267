// In: nodes, one after the other. Out: a program in which each node reads only values that are defined before
// it.
#include "compile/ir/program.h"

#include "core/format.h"
#include "tape/variable.h"

namespace tapedeck::compiled {

ValueId Program::add_argument(const Spec& spec) {
  const ValueId v =
      values_.push_back({.spec = spec, .from = Value::From::argument, .argument = arguments_.size()});
  arguments_.push_back(v);
  return v;
}
ValueId Program::add_constant(const Tensor& x) {
  return values_.push_back({.spec = x.spec(), .from = Value::From::constant, .constant = x});
}

NodeId Program::define(Node&& node) {
  const NodeId id(nodes_.size());
  for_each_operand(node, [&](const Access& a) {
    if (a.of.index() >= values_.size() || values_[a.of].from == Value::From::nothing)
      throw_error<InternalError>("compile: {} reads a value that is not defined", name_of(node));
  });
  for_each_result(node, [&](ValueId v) {
    if (v.index() >= values_.size() || values_[v].from != Value::From::nothing)
      throw_error<InternalError>("compile: {} defines a value that is defined already", name_of(node));
    values_[v].from = Value::From::node;
    values_[v].node = id;
  });
  return nodes_.push_back(std::move(node));
}

void Program::add_output(const Access& a, std::size_t first, bool is_given) {
  outputs_.push_back(a);
  identities_.push_back({first, is_given});
}

IdVector<ValueId, bool> Program::read() const {
  IdVector<ValueId, bool> is_read(values_.size());
  for (const Node& n : nodes_)
    for_each_operand(n, [&](const Access& a) { is_read[a.of] = true; });
  for (const Access& a : outputs_)
    if (a.reads()) is_read[a.of] = true;
  for (const DerivedKey& k : keys_)
    if (k.by) is_read[k.by] = true;
  return is_read;
}

void Program::forget_constants() {
  const IdVector<ValueId, bool> is_read = read();
  for (const ValueId v : ids_of(values_))
    if (values_[v].from == Value::From::constant && !is_read[v])
      values_[v].from = Value::From::nothing, values_[v].constant = {};
}

std::pair<Program, IdVector<NodeId, Node>> Program::take_apart() && {
  IdVector<NodeId, Node> nodes = std::exchange(nodes_, {});
  nodes_.reserve(nodes.size());
  for (Value& v : values_)
    if (v.from == Value::From::node) v.from = Value::From::nothing, v.node = {};
  return {std::move(*this), std::move(nodes)};
}

void Program::make_argument(ValueId v) {
  if (values_[v].from != Value::From::nothing)
    throw_error<InternalError>("compile: value {} is defined already", v.index());
  values_[v].from = Value::From::argument;
  values_[v].argument = arguments_.size();
  arguments_.push_back(v);
}

void Program::back_to(const Mark& m) {
  while (!arguments_.empty() && arguments_.back().index() >= m.values)
    arguments_.pop_back();
  nodes_.resize(m.nodes);
  values_.resize(m.values);
  keys_.resize(m.keys);
}

std::string name_of(const Node& node) {
  struct Name {
    std::string operator()(const OpNode& n) const { return std::string(n.op->name); }
    std::string operator()(const JvpNode&) const { return "tangent"; }
    std::string operator()(const VjpNode& n) const {
      return fmt::format("gradient of {}", n.op ? n.op->name : "map");
    }
    std::string operator()(const UserMapNode& n) const { return n.gradients ? "gradient of map" : "map"; }
    std::string operator()(const SelectNode& n) const { return std::string(n.op ? n.op->name : "slice"); }
    std::string operator()(const ProductSum& n) const { return fmt::format("{}+add", n.op->name); }
    std::string operator()(const ReadNode& n) const { return fmt::format("read {}", n.cell->name); }
    std::string operator()(const StoreNode& n) const { return fmt::format("assign {}", n.cell->name); }
    std::string operator()(const ActionNode& n) const {
      return n.op ? fmt::format("derivative of {}", n.op->name) : "step";
    }
  };
  return std::visit(Name(), node);
}

}   // namespace tapedeck::compiled
