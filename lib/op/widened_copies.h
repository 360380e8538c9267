// Widened copies: tensors of storage dtypes (f16, bf16, i16, u16, u32, u64), converted to the dtypes that ops
// compute in. Kernels and rules that do not accept a storage dtype run on widened copies; their results are
// converted back, and so rounded once.
#pragma once
#include <vector>

#include "tapedeck/op.h"

namespace tapedeck {

/// Whether any of the tensors has a storage dtype.
inline bool any_stored(Refs x) {
  bool any = false;
  for (int i = 0; i < x.size(); ++i)
    any |= x[i].defined() && !is_computed(x[i].handle()->dtype);
  return any;
}
/// Whether a kernel that accepts these dtypes needs a widened copy of a tensor of dtype t.
inline bool needs_widening(KernelDtypes dtypes, DType t) {
  return !is_computed(t) && dtypes != KernelDtypes::all &&
         !(dtypes == KernelDtypes::native_and_halves && is_half(t));
}

/// A list of tensors in which those of a storage dtype are replaced by `widen(x)`, called once per tensor.
class WidenedCopies {
 public:
  WidenedCopies(Refs x, Tensor (*widen)(const Tensor&));
  Refs refs() const { return {pointers_.data(), static_cast<int>(pointers_.size())}; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<const Tensor*> pointers_;
};

/// Runs the kernel of c.op on widened copies. y: the outputs, allocated or not, as the op's Outputs says.
void run_widened(const Call& c, std::span<Tensor> y);

/// Whether the rule of the op needs widened copies of tensors of a storage dtype.
inline bool rule_runs_widened(const Op& op) {
  return op.forward.run && op.forward.dtypes != KernelDtypes::all && op.rule.kind != RuleKind::partials;
}
/// The op's vjp and jvp on widened copies. The conversions are ops, so that recorders see them too.
void pull_back_widened(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);
void push_forward_widened(const Call& c, Refs dx, std::span<Tensor> dy);

}   // namespace tapedeck
