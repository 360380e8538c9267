// Backprop: the state of one backward pass. imperative_grad.cpp has its four steps.
#pragma once
#include "core/storage.h"
#include "op/stacked_shapes.h"
#include "tape/imperative_grad.h"
#include "tape/tensor_state.h"

namespace tapedeck {

class Backprop {
 public:
  Backprop(const VSpace& space, Tape& tape, std::span<const Tensor> targets, std::span<const Tensor> sources,
           const GradientOptions& options, const PassOptions& pass);

  /// Whether the tape may hold ops that cannot contribute to the result, since their inputs depend on no
  /// source, or only by derivatives of zeros.
  bool may_leave_out() const { return watched_sources_ != tape_.watched() || leaves_out_zeros_; }
  void leave_out();   // takes these ops out of the pass
  void filter();
  void seed();
  template <bool arrivals> [[gnu::noinline]] void drain();   // arrivals: whether pass.arrival is set
  Gradient collect(const Tensor& source);

 private:
  static constexpr std::int32_t kNotNeeded = -1, kSeen = -2, kGetsZeros = -3;

  TensorState& tensor(Slot s) { return tensors_[static_cast<std::size_t>(s)]; }
  std::int32_t& pending(std::int32_t entry) { return pending_[static_cast<std::size_t>(entry)]; }
  bool takes_part(Slot s) const { return s >= 0 && !tensors_[static_cast<std::size_t>(s)].left_out; }
  std::int32_t producer(Slot s) { return tensor(s).stopped ? -1 : tape_.producer(s); }
  /// The spec that the gradient of a tensor of spec s has in this pass.
  Spec gradient_spec(const Spec& s) const {
    return pass_.directions ? Spec{s.dtype, behind({pass_.directions}, s.shape)} : s;
  }

  bool leads(TapeEntry& e, std::size_t i) const {
    return takes_part(e.x()[i]) && !(leaves_out_zeros_ && i < 8 && (e.op->rule.zero_in >> i & 1));
  }
  void hand_out_zeros(std::span<const std::int32_t> entries);
  Gradient output_gradient(std::size_t i) const;
  template <bool arrivals> void run(TapeEntry& e);
  void run_rule(TapeEntry& e, std::span<Gradient> dy);
  void prepare(TapeEntry& e, std::span<Gradient> dy);
  Gradient term_to_add_to(const Rule& rule, Slot s, std::span<const Gradient> dy);
  void check(TapeEntry& e, std::size_t i, const Gradient& dx) const;
  template <bool arrivals> void release(Slot s);
  void prioritize();
  void arrive(Slot s);
  const Tensor& zeros_of(const Spec& spec);

  const VSpace& space_;
  Tape& tape_;
  std::span<const Tensor> targets_, sources_;
  const GradientOptions& options_;
  const PassOptions& pass_;
  /// False if the pass is recorded: zero derivatives are then computed, since an outer tape sees them as
  /// functions of the inputs.
  const bool leaves_out_zeros_;
  CachedVector<TensorState> tensors_;    // by slot
  CachedVector<std::int32_t> pending_;   // by entry: the outputs that are used and not complete
  CachedVector<std::int32_t> ready_;
  Tensor zeros_;                            // the zeros that were needed last
  std::vector<std::size_t> source_index_;   // by slot; filled when the first source arrives
  std::size_t watched_sources_ = 0;
  std::size_t passed_over_ = 0;   // the ready ops that prioritize() has seen
};

}   // namespace tapedeck
