// One step of an optimizer, and what it keeps between steps.
#pragma once
#include <deque>

#include "optim/slots.h"
#include "optim/update_rows.h"
#include "tapedeck/optimizer.h"

namespace tapedeck {

/// A variable's part of a step.
struct Update {
  const Gradient* gradient;
  const Variable* variable;
  std::optional<kernels::RowOrder> order = {};   // of a sparse gradient
  /// The variable's slots where its rule is to begin with new ones, or as a trial step leaves them.
  std::optional<Slots> slots = {};
  /// The numbers of a gradient of f16 or bf16, in f32.
  Tensor numbers = {};
  /// Memory for the new value, where others hold the old one; or the outcome of a trial step.
  Tensor value = {};

  detail::VariableCell& cell() const { return variable->cell(); }
  bool is_half() const { return tapedeck::is_half(cell().value.dtype()); }
  StepGradient step_gradient() const {
    const Tensor& given = order ? gradient->slices()->values : gradient->tensor();
    return {numbers.defined() ? numbers : given, order ? &*order : nullptr};
  }
};

/// A slot's value for a variable of which only the name is known.
struct PendingSlot {
  std::string variable;
  std::size_t slot;
  Tensor value;
  std::uint64_t restore_id;
};

struct Optimizer::State {
  const UpdateRule& rule;
  std::vector<Scheduled> hyperparameters;
  std::array<bool, kMaxSlots> present = {};   // slots
  std::int64_t iterations = 0;
  Scalars scalars = {};
  std::array<std::uint64_t, kMaxScalars + 1> restored = {};   // ids of scalars, and of iterations
  SlotTable slots = {};
  std::vector<PendingSlot> pending = {};
  std::deque<GradientTransform> transforms = {};   // of which one may add another
  std::vector<Update> updates = {};                // kept between steps for its memory

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
  void prepare_updates(std::span<Update> updates, const Step& s);
  void try_step(std::span<Update> updates, std::size_t i, const Step& s);
  void change(Tensor& x, Slots& own, const Update& u, const Step& s) const noexcept;
  void change_by_tensors(Tensor& x, Slots& own, const Update& u, const Step& s) const;
  void find_slots(Update& u, const Hyperparameters& h);
  void find_memory(Update& u);
  void run(Update& u, const Step& s) noexcept;
  /// Whether the step is first taken on copies, since code of the user's may throw in it.
  bool needs_trial(const Update& u) const { return !rule.by_rows() || u.cell().constraint; }
};

/// The name of the i-th slot, or of the master.
inline std::string_view name_of_slot(const UpdateRule& rule, std::size_t i) {
  return i == kMaster ? kMasterName : rule.slots[i].name;
}

/// Throws where the gradient, which is not none, cannot be one of the variable. The message begins with the
/// caller.
void check(const UpdateRule& rule, const Gradient& g, const Variable& v,
           std::string_view caller = "apply_gradients");
/// Throws where the rows that a rule's prepare has chosen do not take the variable's dtype.
void check_rows(const UpdateRule& rule, const Step& s, const Variable& v);
/// Throws where value cannot be the i-th slot of the variable.
void check_slot(const UpdateRule& rule, std::size_t i, const detail::VariableCell& cell, const Tensor& value);

}   // namespace tapedeck
