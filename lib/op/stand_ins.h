// Stand-ins: tensors of dtypes for storage, in the dtypes that ops compute in. Kernels and rules that do not
// take f16, bf16, i16, u16, u32 and u64 themselves run on them; what they return is rounded once.
#pragma once
#include <vector>

#include "tapedeck/op.h"

namespace tapedeck {

/// Whether there is one of a dtype for storage.
inline bool any_stored(Refs x) {
  bool any = false;
  for (int i = 0; i < x.size(); ++i)
    any |= x[i].defined() && !is_computed(x[i].handle()->dtype);
  return any;
}
/// Whether a kernel that takes these needs a stand-in for a tensor of dtype t.
inline bool needs_stand_in(Takes takes, DType t) {
  return !is_computed(t) && takes != Takes::any && !(takes == Takes::halves && is_half(t));
}

/// A list of tensors with stand-ins for some; those for one tensor are one.
class StandIns {
 public:
  StandIns(Refs x, Tensor (*stand_in)(const Tensor&));
  Refs refs() const { return {pointers_.data(), static_cast<int>(pointers_.size())}; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<const Tensor*> pointers_;
};

/// The kernel of c.op on stand-ins. y: the outputs, with or without memory as its Outputs says.
void run_on_stand_ins(const Call& c, std::span<Tensor> y);

/// Whether the rule of c.op runs on stand-ins, if there are any.
inline bool rule_takes_stand_ins(const Op& op) {
  return op.forward.run && op.forward.takes != Takes::any && op.rule.kind != RuleKind::partials;
}
/// Its vjp and jvp on stand-ins, by ops, so that recorders see the conversions too.
void pull_back_on_stand_ins(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);
void push_forward_on_stand_ins(const Call& c, Refs dx, std::span<Tensor> dy);

}   // namespace tapedeck
