// Replay: runs a plan in memory of its own. A replay serves one call at a time; concurrent calls use separate
// replays.
#pragma once
#include "compile/fuse/bound_group.h"
#include "compile/plan/plan.h"
#include "compile/replay/called.h"
#include "compile/replay/small_node.h"
#include "op/observer.h"

namespace tapedeck::compiled {

/// The integer at p.
std::uint64_t integer_at(const std::byte* p, DType dtype);

class Replay {
 public:
  /// Uses these arenas, which other replays may use between calls.
  Replay(const Plan& plan, Arena arena, Arena scratch);
  Replay(const Replay&) = delete;

  /// Sets y to the results of the function for these arguments and keys. Reuses the memory of a tensor in y
  /// that has the right spec and no other owner. After an exception, y has its former tensors, with
  /// unspecified elements, and variables are as the last action before the exception left them. `observed`:
  /// the steps of the plan as observers see them; empty if there are no observers.
  void run(std::span<const Tensor> arguments, std::span<const random::Key> keys, std::vector<Tensor>& y,
           std::span<const ReplayedStep> observed = {});
  /// As run, in memory of the caller: the results are written there, which must not overlap the arguments. A
  /// null argument is not read. Where results have more than 64 bytes, the rest of their last line of 64 may
  /// be written, too.
  void run_at(std::span<const ReadOnly> arguments, std::span<const random::Key> keys,
              std::span<const Writable> y);

 private:
  friend class LoopReplay;
  /// How a step runs: as the next group, small node, or bound node.
  enum class How : std::uint8_t { group, small, bound };
  struct Next {
    std::size_t group = 0, small = 0, bound = 0;
  };
  /// A node with the tensors that its kernel is called with. The memory of x is read-only; that of y is
  /// writable. Both are bound once, or in each call.
  struct Bound {
    const Node* node = nullptr;
    std::vector<Tensor> x = {}, y = {};   // undefined if the result is not wanted
    std::vector<const Tensor*> refs = {};
    OwnedAttrs attrs = {};   // the attributes of a node with a key, which changes from call to call
    std::unique_ptr<PreparedCall> call = {};   // of a node that runs programs
  };
  /// A pointer of a node or group that is set to the beginning of an operand.
  struct Use {
    const std::byte** pointer;
    std::int64_t first_byte;
  };
  /// One result of a call.
  struct Output {
    enum class How : std::uint8_t {
      none,
      repeated,       // the same tensor as result `of`
      given,          // the tensor of the constant, or of argument `of`
      shares_given,   // a new tensor that shares the memory of the constant or argument
      shares,         // a new tensor that shares the memory of result `of`
      computed,       // computed in its memory, which a call allocates or takes from the caller
      copied          // copied to such memory at the end
    };
    const Access* access;
    How how = How::none;
    std::size_t of = 0;
    const Tensor* constant = nullptr;   // null if it is an argument
    std::int64_t bytes = 0;
    Tensor result = {};   // the tensor in the current call
    bool taken = false;   // whether `result` is a tensor that the caller passed in y
  };
  struct Pending {
    const Bound* store;
    Tensor fresh;   // new memory for the variable, if its memory has other owners
  };

  /// Ends a call: drops the tensors that were kept alive, whose memory results are copied from, and, after an
  /// exception, stores that have not taken effect.
  struct EndOfCall {
    Replay& replay;
    ~EndOfCall() { replay.held_.clear(), replay.pending_.clear(); }
  };

  void add_node(NodeId n);
  void add_bound(const Node& node);
  void use_values();
  bool is_fixed(ValueId v) const;
  void read_at(ValueId v, std::int64_t first_byte, const std::byte*& pointer);
  void write_at(ValueId v, std::byte*& pointer);
  void bind(ValueId v, ReadOnly m);
  void bind(ValueId v, Writable m);
  /// Whether a value is in memory of the replay, at the same place in each call.
  bool is_own(ValueId v) const {
    const Home::In in = plan_.homes[v].in;
    return in == Home::In::arena || in == Home::In::constants;
  }
  const std::byte* constant_of(const Output& out) const;
  const std::byte* place_of(const Access& a) const {
    return memory_.read[a.of].get() + a.first * size_of(a.spec.dtype);
  }
  void fill(ValueId v, const std::byte* from) { fill(v, from, plan_.program[v].spec.nbytes()); }
  void fill(ValueId v, const std::byte* from, std::int64_t bytes);
  Tensor operand(const Access& a);
  Tensor result(ValueId v);
  void bind_fixed();
  template <class X> void bind_keys(std::span<const random::Key> keys, const X& arguments);
  template <class X> void run_bound(std::span<const random::Key> keys, const X& arguments);
  void add_outputs();
  void bind_output(Output& out, std::span<const Tensor> arguments, Tensor* given);
  void give_back(std::vector<Tensor>& y);
  void run_steps(std::span<const ReplayedStep> observed);
  void run_step(How how, Next& next);
  void run_observed(std::span<const ReplayedStep> observed);
  void run_node(Bound& b);
  void run(const OpNode& n, Bound& b);
  void run(const JvpNode& n, Bound& b);
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
  std::vector<How> how_;   // by step
  std::vector<BoundGroup> groups_;
  std::vector<SmallNode> small_;
  std::vector<Bound> bound_;
  // For values whose memory changes from call to call: the pointers to set.
  IdVector<ValueId, std::vector<Use>> reads_;
  IdVector<ValueId, std::vector<std::byte**>> writes_;
  IdVector<KeyId, random::Key> keys_;
  std::vector<std::int64_t> argument_bytes_;
  std::vector<Output> outputs_;
  std::vector<Pending> pending_;   // stores that are deferred until the next action or the end
  std::vector<Tensor> held_;       // tensors kept alive until the end of the call
};

/// arguments(i): the elements of argument i.
template <class X> void Replay::bind_keys(std::span<const random::Key> keys, const X& arguments) {
  const Program& p = plan_.program;
  for (const KeyId k : ids_of(p.keys())) {
    const DerivedKey& key = p.keys()[k];
    const std::uint64_t number =
        key.by ? integer_at(arguments(p[key.by].argument), p[key.by].spec.dtype) : key.number;
    keys_[k] = key.of || key.by ? (key.of ? keys_[key.of] : key.constant).split(number) : keys[number];
  }
}

/// Runs the steps. The arguments have been copied or bound, and the results that are bound.
template <class X> void Replay::run_bound(std::span<const random::Key> keys, const X& arguments) {
  bind_keys(keys, arguments);
  run_steps({});
  assign();
}

}   // namespace tapedeck::compiled
