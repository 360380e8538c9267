// One step of an optimizer, and what it keeps between steps.
#pragma once
#include <deque>

#include "optim/slots.h"
#include "optim/update_rows.h"
#include "tapedeck/optimizer.h"

namespace tapedeck {

/// The update of one variable in a step.
struct Update {
  const Gradient* gradient;
  const Variable* variable;
  std::optional<kernels::RowOrder> order = {};   // of a sparse gradient; else none
  /// New slots, if the rule has none for the variable yet; or the slots that result from a trial step.
  std::optional<Slots> slots = {};
  /// The values of an f16 or bf16 gradient, in f32.
  Tensor numbers = {};
  /// Memory for the new value, if the old one is shared; or the value that results from a trial step.
  Tensor value = {};

  detail::VariableCell& cell() const { return variable->cell(); }
  bool is_half() const { return tapedeck::is_half(cell().value.dtype()); }
  StepGradient step_gradient() const {
    const Tensor& given = order ? gradient->slices()->values : gradient->tensor();
    return {numbers.defined() ? numbers : given, order ? &*order : nullptr};
  }
};

/// The value of a slot that was restored before its variable exists; `variable` is the name.
struct PendingSlot {
  std::string variable;
  std::size_t slot;
  Tensor value;
  std::uint64_t restore_id;
};

struct Optimizer::State {
  const UpdateRule& rule;
  std::vector<Scheduled> hyperparameters;
  std::array<bool, kMaxSlots> present = {};   // which slots the optimizer uses
  std::int64_t iterations = 0;
  Scalars scalars = {};
  std::array<std::uint64_t, kMaxScalars + 1> restored = {};   // restore ids: scalars, iterations
  SlotTable slots = {};
  std::vector<PendingSlot> pending = {};
  std::deque<GradientTransform> transforms = {};   // a deque, since one may add another while it runs
  std::vector<Update> updates = {};                // kept between steps for its memory

  State(const UpdateRule& r, std::span<const Hyperparameter> given);

  /// A step with transformed gradients. Throws before anything changes.
  void apply(std::vector<Update> updates, const std::optional<Variable>& global_step);
  /// The step of one of several replicas; all of them must call this.
  void apply_together(std::span<const GradientAndVariable> pairs, const std::optional<Variable>& global_step);
  void step(std::span<Update> updates, const std::optional<Variable>& global_step);
  /// The hyperparameters of the next step. Throws if the value of a schedule is outside its domain.
  Hyperparameters values() const;
  /// The index of a slot that the optimizer uses. Throws ArgumentError for another name.
  std::size_t find_slot(std::string_view name) const;
  /// Moves the values restored under the variable's name into its slots. Throws if one does not fit.
  void adopt(detail::VariableCell& cell);

 private:
  Slots complete(Slots slots, const Tensor& value, const Hyperparameters& h) const;
  void prepare_updates(std::span<Update> updates, const Step& s);
  void try_step(std::span<Update> updates, std::size_t i, const Step& s);
  void change(Tensor& x, Slots& own, const Update& u, const Step& s) const noexcept;
  void change_by_tensors(Tensor& x, Slots& own, const Update& u, const Step& s) const;
  void find_slots(Update& u, const Hyperparameters& h);
  void find_memory(Update& u);
  void run(Update& u, const Step& s) noexcept;
  /// Whether the step is first run on copies, since the user's code in it may throw.
  bool needs_trial(const Update& u) const { return !rule.by_rows() || u.cell().constraint; }
};

/// The name of the i-th slot, or of the master.
inline std::string_view name_of_slot(const UpdateRule& rule, std::size_t i) {
  return i == kMaster ? kMasterName : rule.slots[i].name;
}

/// Throws if the gradient, which must be defined, does not fit the variable. The message begins with the
/// caller.
void check(const UpdateRule& rule, const Gradient& g, const Variable& v,
           std::string_view caller = "apply_gradients");
/// Throws if the rows that a rule's prepare has chosen do not support the variable's dtype.
void check_rows(const UpdateRule& rule, const Step& s, const Variable& v);
/// Throws if value does not fit slot i of the variable.
void check_slot(const UpdateRule& rule, std::size_t i, const detail::VariableCell& cell, const Tensor& value);

}   // namespace tapedeck
