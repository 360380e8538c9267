// Replay: runs a plan in memory of its own. One call at a time; each thread that calls takes another one.
#pragma once
#include "compile/plan/plan.h"
#include "compile/replay/small_node.h"
#include "op/observer.h"

namespace tapedeck::compiled {

class Replay {
 public:
  /// In these arenas, which other replays may use between the calls.
  Replay(const Plan& plan, Arena arena, Arena scratch);
  Replay(const Replay&) = delete;

  /// y becomes what the function returns for these arguments and keys, in the memory of the tensors that y
  /// has where these fit and nothing else shares them. After an exception, y has its tensors, with
  /// unspecified elements, and variables are as the last action before it left them. `observed`: the plan's
  /// steps, which observers see, or none where nothing is to be seen.
  void run(std::span<const Tensor> arguments, std::span<const random::Key> keys, std::vector<Tensor>& y,
           std::span<const ReplayedStep> observed = {});

 private:
  /// How a step runs: the next of the groups, of the small nodes, or of the others.
  enum class How : std::uint8_t { group, small, bound };
  struct Next {
    std::size_t group = 0, small = 0, bound = 0;
  };
  /// A node with the tensors that its kernel is called with. Those of x lie in the memory of values, those of
  /// y in what may be written; both are bound once, or at each call.
  struct Bound {
    const Node* node = nullptr;
    std::vector<Tensor> x = {}, y = {};   // undefined: not read; not wanted
    std::vector<const Tensor*> refs = {};
    OwnedAttrs attrs = {};   // of a node with a key, which changes
  };
  /// Where a node is told where an operand begins.
  struct Use {
    const std::byte** pointer;
    std::int64_t first_byte;
  };
  /// What a call returns.
  struct Output {
    enum class How : std::uint8_t {
      none,
      repeated,       // the tensor that result `of` is
      given,          // the constant, or argument `of`
      shares_given,   // a tensor of its own in the memory of that
      shares,         // the same in the memory of result `of`
      computed,       // in its memory, which a call allocates or takes from the caller
      copied          // to such memory at the end
    };
    const Access* access;
    How how = How::none;
    std::size_t of = 0;
    const Tensor* constant = nullptr;   // null: there is an argument
    Tensor result = {};                 // of this call
    bool taken = false;                 // it is a tensor that this call was given
  };
  struct Pending {
    const Bound* store;
    Tensor fresh;   // memory for the variable, where others share what it has
  };

  void add_node(NodeId n);
  void add_bound(const Node& node);
  void use_values();
  bool is_fixed(ValueId v) const;
  void read_at(const Access& a, const std::byte*& pointer);
  void write_at(ValueId v, std::byte*& pointer);
  void bind(ValueId v, ReadOnly m);
  void bind(ValueId v, Writable m);
  void fill(ValueId v, const Tensor& from);
  Tensor operand(const Access& a);
  Tensor result(ValueId v);
  void bind_fixed();
  void bind_call(std::span<const Tensor> arguments, std::span<const random::Key> keys,
                 std::vector<Tensor>& y);
  void add_outputs();
  void bind_output(Output& out, std::span<const Tensor> arguments, Tensor* given);
  void give_back(std::vector<Tensor>& y);
  void run_step(How how, Next& next);
  void run_observed(std::span<const ReplayedStep> observed);
  void run_node(Bound& b);
  void run(const OpNode& n, Bound& b);
  void run(const MapNode& n, Bound& b);
  void run(const VjpNode& n, Bound& b);
  void run(const UserMapNode& n, Bound& b);
  void run(const SelectNode& n, Bound& b);
  void run(const ProductSum& n, Bound& b);
  void run(const ReadNode& n, Bound& b);
  void run(const StoreNode& n, Bound& b);
  void run(const ActionNode& n, Bound& b);
  void assign();
  std::vector<Tensor> copies(std::span<const Tensor> x) const;
  void keep(const Node& node, std::span<const ValueId> out, std::vector<Tensor> y);
  void keep(ValueId v, Tensor returned);
  void results(std::vector<Tensor>& y);

  const Plan& plan_;
  Arena arena_, scratch_, constants_;
  Memory memory_;
  std::vector<How> how_;   // of the steps
  std::vector<SmallNode> small_;
  std::vector<Bound> bound_;
  // Of values whose memory is another in each call: where nodes are told.
  IdVector<ValueId, std::vector<Use>> reads_;
  IdVector<ValueId, std::vector<std::byte**>> writes_;
  IdVector<KeyId, random::Key> keys_;
  std::vector<Output> outputs_;
  std::vector<Pending> pending_;   // stores, until the next action or the end
  std::vector<Tensor> held_;       // until the end of the call
};

}   // namespace tapedeck::compiled
