// The arguments of a rule in a backward pass.
#pragma once
#include "tape/tape_entry.h"

namespace tapedeck {

/// The saved inputs and outputs of an entry in the form that a rule expects, and space for the gradients. An
/// op with at most kMaxInputs inputs and one output needs no allocation. Inlined, since it is constructed
/// once per op of a pass.
class RuleArguments {
 public:
  [[gnu::always_inline]] explicit RuleArguments(TapeEntry& e)
      : x_(few_x_), dx_(few_dx_), inputs_(e.inputs), outputs_(e.outputs) {
    const std::span<Tensor> kept_x = e.kept_x(), kept_y = e.kept_y();
    if (inputs_ > kMaxInputs) {
      more_x_.resize(kept_x.size());
      more_dx_.resize(kept_x.size());
      x_ = more_x_.data();
      dx_ = more_dx_.data();
    }
    for (std::size_t i = 0; i < kept_x.size(); ++i)
      x_[i] = &kept_x[i];
    one_y_ = &kept_y[0];
    if (outputs_ > 1)
      for (const Tensor& t : kept_y)
        more_y_.push_back(&t);
  }
  [[gnu::always_inline]] ~RuleArguments() {}
  RuleArguments(const RuleArguments&) = delete;
  RuleArguments& operator=(const RuleArguments&) = delete;

  // Constructed on demand, not stored: a load of 16 bytes right after two shorter stores stalls the
  // processor.
  Refs x() const { return {x_, inputs_}; }
  Refs y() const { return {outputs_ > 1 ? more_y_.data() : &one_y_, outputs_}; }
  std::span<Gradient> dx() const { return {dx_, static_cast<std::size_t>(inputs_)}; }

 private:
  const Tensor* few_x_[kMaxInputs];
  Gradient few_dx_[kMaxInputs];
  const Tensor* one_y_;
  std::vector<const Tensor*> more_x_, more_y_;
  std::vector<Gradient> more_dx_;
  const Tensor** x_;
  Gradient* dx_;
  int inputs_, outputs_;
};

/// Runs a rule that does not support stacked cotangents once per cotangent, and stacks the gradients.
void run_once_per_cotangent(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx,
                            std::int64_t directions);

}   // namespace tapedeck
