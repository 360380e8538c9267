// The arguments of a rule in a backward pass.
#pragma once
#include "tape/entry.h"

namespace tapedeck {

/// The saved inputs and outputs of an entry as a rule takes them, and space for its gradients. Nothing is
/// allocated for an op with few inputs and one output.
class RuleArguments {
 public:
  explicit RuleArguments(TapeEntry& e) {
    const std::span<Tensor> kept_x = e.kept_x(), kept_y = e.kept_y();
    const std::size_t n = kept_x.size();
    if (n > kMaxInputs) more_x_.resize(n), more_dx_.resize(n);
    const Tensor** x = n > kMaxInputs ? more_x_.data() : few_x_;
    for (std::size_t i = 0; i < n; ++i)
      x[i] = &kept_x[i];
    if (kept_y.size() > 1)
      for (const Tensor& t : kept_y)
        more_y_.push_back(&t);
    one_y_ = &kept_y[0];
    dx = {n > kMaxInputs ? more_dx_.data() : few_dx_, n};
    this->x = {x, e.inputs};
    y = {kept_y.size() > 1 ? more_y_.data() : &one_y_, e.outputs};
  }
  RuleArguments(const RuleArguments&) = delete;
  RuleArguments& operator=(const RuleArguments&) = delete;

  Refs x, y;
  std::span<Gradient> dx;

 private:
  const Tensor* few_x_[kMaxInputs];
  Gradient few_dx_[kMaxInputs];
  const Tensor* one_y_;
  std::vector<const Tensor*> more_x_, more_y_;
  std::vector<Gradient> more_dx_;
};

/// Runs a rule that does not take stacked cotangents once for each of them, and stacks the gradients.
void run_once_per_cotangent(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx,
                            std::int64_t directions);

}   // namespace tapedeck
