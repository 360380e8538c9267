// Program: a recorded function of tensors, in static single-assignment form. Each value is an argument, a
// constant, or defined by one node, and never changes. Nodes are in topological order: each comes after the
// nodes whose results it reads. Rewrites return another program.
#pragma once
#include "compile/ir/node.h"

namespace tapedeck::compiled {

struct Value {
  enum class From : std::uint8_t { nothing, node, argument, constant };
  Spec spec;
  From from = From::nothing;   // nothing: not defined (yet, or any more), so no node may read it
  NodeId node = {};            // the node that defines it
  std::size_t argument = 0;    // its index; the first one, if a tensor is several arguments
  Tensor constant = {};        // created before the recording, or from numbers on the host
};

/// A key for random numbers: an argument of the function, or split from another key.
struct DerivedKey {
  KeyId of = {};               // the key that was split; none if this key is an argument
  std::uint64_t number = 0;    // the index of the argument, or the number of the split
  ValueId by = {};             // the argument that holds the number of the split; none if `number` is it
  random::Key constant = {};   // the key that was split if there is `by`, but not `of`
};

class Program {
 public:
  ValueId add_argument(const Spec& spec);
  /// Adds an argument that is the same tensor as this value.
  void repeat_argument(ValueId v) { arguments_.push_back(v); }
  ValueId add_constant(const Tensor& x);
  /// Makes a value that no node defines any more an argument.
  void make_argument(ValueId v);
  KeyId add_key(DerivedKey key) { return keys_.push_back(key); }
  /// Adds a value that a node will define later.
  ValueId promise(const Spec& spec) { return values_.push_back({.spec = spec}); }
  /// Appends a node. Throws InternalError if it reads a value that is not defined, or defines one that is.
  NodeId define(Node&& node);
  /// Adds an output. `first`: the index of the first output that is the same tensor. `is_given`: the function
  /// returns the tensor of an argument or a constant itself, not another tensor with the same elements.
  void add_output(const Access& a, std::size_t first, bool is_given);
  void clear_outputs() { outputs_.clear(), identities_.clear(); }
  void add_output(const Access& a) { add_output(a, outputs_.size(), false); }
  /// By value: whether a node, an output or a key reads it.
  IdVector<ValueId, bool> read() const;
  /// Releases constants that nothing reads. To be called when the program is complete.
  void forget_constants();

  std::size_t size() const { return nodes_.size(); }
  const Value& operator[](ValueId v) const { return values_[v]; }
  const Node& operator[](NodeId n) const { return nodes_[n]; }
  const IdVector<ValueId, Value>& values() const { return values_; }
  const IdVector<NodeId, Node>& nodes() const { return nodes_; }
  const IdVector<KeyId, DerivedKey>& keys() const { return keys_; }
  const std::vector<ValueId>& arguments() const { return arguments_; }
  /// The outputs of the function. An undefined tensor is an access that reads nothing.
  const std::vector<Access>& outputs() const { return outputs_; }
  struct Identity {
    std::size_t first;
    bool is_given;
  };
  const std::vector<Identity>& identities() const { return identities_; }   // by output

  /// An access to all elements of a value.
  Access all_of(ValueId v) const { return {v, 0, values_[v].spec}; }
  /// Whether an access reads all elements of its value, in the value's shape.
  bool is_all(const Access& a) const { return a.first == 0 && a.spec == values_[a.of].spec; }
  /// The node that defines the value that is read, or none.
  NodeId node_of(const Access& a) const { return a.reads() ? values_[a.of].node : NodeId(); }

  /// For rewrites: returns the program without its nodes, whose values are undefined again, and the nodes.
  std::pair<Program, IdVector<NodeId, Node>> take_apart() &&;
  /// For a recording that is partly discarded: mark() returns the current size, and back_to() restores it.
  struct Mark {
    std::size_t values, nodes, keys;
  };
  Mark mark() const { return {values_.size(), nodes_.size(), keys_.size()}; }
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
