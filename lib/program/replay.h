// Replay: runs a plan in memory of its own. One call at a time; each thread that calls takes another one.
#pragma once
#include "op/observer.h"
#include "program/plan.h"

namespace tapedeck::program {

class Replay {
 public:
  /// In that memory, which other replays may use between the calls.
  Replay(const Plan& plan, Tensor arena, Tensor scratch);
  Replay(const Replay&) = delete;

  /// y becomes what the function returns for these arguments and keys, in the memory of the tensors that y
  /// has where these fit and nothing else shares them. After an exception, variables are as the last action
  /// before it left them. `observed`: the plan's steps, which observers see, or none where nothing is to be
  /// seen.
  void run(std::span<const Tensor> arguments, std::span<const random::Key> keys, std::vector<Tensor>& y,
           std::span<const ReplayedStep> observed = {});

 private:
  /// A node with its tensors, whose memory is bound once or at each call.
  struct Bound {
    const Node* node;
    std::vector<Tensor> x = {}, y = {};   // undefined: not read; not wanted
    std::vector<const Tensor*> refs = {};
    OwnedAttrs attrs = {};   // of a node with a key, which changes
  };

  struct Pending {
    const Bound* store;
    Tensor fresh;   // memory for the variable, where others share what it has
  };

  void bind(ValueId whole, std::byte* data);
  void fill(ValueId whole, const Tensor& from);
  Tensor tensor_of(ValueId v);
  Bound bound(const Node& node);
  void bind_constants();
  void bind_call(std::span<const Tensor> arguments, std::span<const random::Key> keys,
                 std::vector<Tensor>& y);
  void run_step(const ProgramStep& step, std::size_t& group);
  void run_observed(std::span<const ReplayedStep> observed);
  void run_node(Bound& b);
  void run_op(Bound& b);
  void run_product(Bound& b);
  void run_pull(Bound& b);
  void run_pass(Bound& b);
  void read(const Bound& b);
  void store(const Bound& b);
  void assign();
  void keep(ValueId v, Tensor returned);
  void results(std::span<const Tensor> arguments, std::vector<Tensor>& y) const;

  const Plan& plan_;
  Tensor arena_, scratch_, constants_;
  std::vector<Tensor> values_;       // of those that nodes are called with
  std::vector<std::byte*> memory_;   // of all
  std::vector<Bound> nodes_;
  std::vector<random::Key> keys_;
  std::vector<Pending> pending_;     // stores, until the next action or the end
  std::vector<Tensor> held_;         // until the end of the call
  std::vector<ValueId> allocated_;   // at each call: the values of Memory::output
  std::vector<Tensor> outputs_;      // by value; of these alone
};

}   // namespace tapedeck::program
