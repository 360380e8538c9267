// One step of an optimizer, and what it keeps between steps.
#pragma once
#include "kernels/elementwise/update.h"
#include "optim/slots.h"
#include "tapedeck/optimizer.h"

namespace tapedeck {

/// A variable's part of a step.
struct Update {
  const Gradient* gradient;
  const Variable* variable;
  std::optional<kernels::RowOrder> order = {};   // of a sparse gradient
  std::optional<Slots> slots =
      {};              // what the variable's slots are before its rule runs, or after that of a rehearsal
  Tensor value = {};   // memory for the new value, where others hold the old one; the outcome of a rehearsal

  detail::VariableCell& cell() const { return variable->cell(); }
  kernels::StepGradient step_gradient() const {
    if (order) return {gradient->slices()->values, &*order};
    return {gradient->tensor()};
  }
};

/// A slot's value for a variable of which only the name is known.
struct PendingSlot {
  std::string variable;
  std::size_t slot;
  Tensor value;
  std::uint64_t restore_id;
};

struct [[gnu::visibility("hidden")]] Optimizer::State {
  const UpdateRule& rule;
  std::vector<Scheduled> hyperparameters;
  std::array<bool, kMaxSlots> present = {};   // slots
  std::int64_t iterations = 0;
  Scalars scalars = {};
  std::array<std::uint64_t, kMaxScalars + 1> restored = {};   // ids of scalars, and of iterations
  SlotTable slots = {};
  std::vector<PendingSlot> pending = {};
  std::vector<GradientTransform> transforms = {};
  std::vector<Update> updates = {};   // kept between steps for its memory

  State(const UpdateRule& r, std::span<const Hyperparameter> given);

  /// A step with transformed gradients. Throws before anything changes.
  void apply(std::vector<Update> updates, const std::optional<Variable>& global_step);
  /// The same for one of many replicas, which all do so.
  void apply_together(std::span<const GradientAndVariable> pairs, const std::optional<Variable>& global_step);
  void step(std::span<Update> updates, const std::optional<Variable>& global_step);
  /// As the next step has them. Throws for a value of a schedule that is in no domain.
  Hyperparameters values() const;
  /// The place of a slot that there is. Throws ArgumentError for another name.
  std::size_t find_slot(std::string_view name) const;
  /// Moves what was restored under a variable's name into its slots. Throws for what does not fit.
  void adopt(detail::VariableCell& cell);

 private:
  Slots complete(Slots slots, const Tensor& value, const Hyperparameters& h) const;
  void rehearse(std::span<Update> updates, std::size_t i, const Step& s);
  void change(Tensor& x, Slots& own, const Update& u, const Step& s) const noexcept;
  void change_by_tensors(Tensor& x, Slots& own, const Update& u, const Step& s) const;
  void find_slots(Update& u, const Hyperparameters& h);
  void find_memory(Update& u);
  void run(Update& u, const Step& s) noexcept;
  bool rehearses(const Update& u) const { return !rule.by_rows() || u.cell().constraint; }
};

/// Throws where the gradient, which is not none, cannot be one of the variable. The message begins with the
/// caller.
void check(const UpdateRule& rule, const Gradient& g, const Variable& v,
           std::string_view caller = "apply_gradients");
/// Throws where value cannot be the i-th slot of the variable.
void check_slot(const UpdateRule& rule, std::size_t i, const detail::VariableCell& cell, const Tensor& value);

}   // namespace tapedeck
