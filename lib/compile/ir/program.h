// Program: what a function of tensors computes, in static single-assignment form. Each value is an argument,
// a constant, or defined by one node, and never changes; nodes stand in an order in which each comes after
// what it reads. A rewrite makes another program.
#pragma once
#include "compile/ir/node.h"

namespace tapedeck::compiled {

struct Value {
  enum class From : std::uint8_t { nothing, node, argument, constant };
  Spec spec;
  From from = From::nothing;   // nothing: no node has defined it yet, or any more, and none may read it
  NodeId node = {};            // that defines it
  std::size_t argument = 0;    // its number: the first, where one tensor is several arguments
  Tensor constant = {};        // there before the recording, or made of numbers on the host
};

/// A key of random numbers: one that the function is called with, or a part of another.
struct DerivedKey {
  KeyId of = {};              // none: the key is an argument
  std::uint64_t number = 0;   // of the argument, or of the part
};

class Program {
 public:
  ValueId add_argument(const Spec& spec);
  /// One more argument that is the same tensor as this value.
  void repeat_argument(ValueId v) { arguments_.push_back(v); }
  ValueId add_constant(const Tensor& x);
  KeyId add_key(DerivedKey key) { return keys_.push_back(key); }
  /// A value for a node that is about to be defined.
  ValueId promise(const Spec& spec) { return values_.push_back({.spec = spec}); }
  /// Appends a node. Throws InternalError where it reads what is not there yet, or defines what is.
  NodeId define(Node&& node);
  /// What is returned. `first`: the number of the first output that is the same tensor; `is_given`: the
  /// tensor is an argument or a constant itself, and not another one with its elements.
  void add_output(const Access& a, std::size_t first, bool is_given);
  void add_output(const Access& a) { add_output(a, outputs_.size(), false); }
  /// Lets constants go that no node reads, when all is defined.
  void forget_constants();

  std::size_t size() const { return nodes_.size(); }
  const Value& operator[](ValueId v) const { return values_[v]; }
  const Node& operator[](NodeId n) const { return nodes_[n]; }
  const IdVector<ValueId, Value>& values() const { return values_; }
  const IdVector<NodeId, Node>& nodes() const { return nodes_; }
  const IdVector<KeyId, DerivedKey>& keys() const { return keys_; }
  const std::vector<ValueId>& arguments() const { return arguments_; }
  /// What the function returns; of an undefined tensor an access that reads nothing.
  const std::vector<Access>& outputs() const { return outputs_; }
  struct Identity {
    std::size_t first;
    bool is_given;
  };
  const std::vector<Identity>& identities() const { return identities_; }   // of the outputs

  /// All of a value.
  Access all_of(ValueId v) const { return {v, 0, values_[v].spec}; }
  /// Whether an access reads all of its value, under its own shape.
  bool is_all(const Access& a) const { return a.first == 0 && a.spec == values_[a.of].spec; }
  /// The node that defines what is read, or none.
  NodeId node_of(const Access& a) const { return a.reads() ? values_[a.of].node : NodeId(); }

  /// For a rewrite: the same without nodes, whose values are promised again; and the nodes.
  std::pair<Program, IdVector<NodeId, Node>> take_apart() &&;
  /// For a recording that is given up in part: how far it has come, and back to there.
  struct Mark {
    std::size_t values, nodes;
  };
  Mark mark() const { return {values_.size(), nodes_.size()}; }
  void back_to(const Mark& m);

 private:
  IdVector<ValueId, Value> values_;
  IdVector<NodeId, Node> nodes_;
  IdVector<KeyId, DerivedKey> keys_;
  std::vector<ValueId> arguments_;
  std::vector<Access> outputs_;
  std::vector<Identity> identities_;
};

}   // namespace tapedeck::compiled
