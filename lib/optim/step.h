// One step of an optimizer, and what it keeps between steps.
#pragma once
#include "optim/slots.h"
#include "tapedeck/optimizer.h"

namespace tapedeck {

/// A variable's part of a step.
struct Update {
  const Gradient* gradient;
  const Variable* variable;
  std::optional<kernels::RowOrder> order = {};   // of a sparse gradient
  std::optional<Slots> slots = {};   // what the variable's slots are before its rule runs, or after that of a rehearsal
  Tensor value = {};                 // memory for the new value, where others hold the old one; the outcome of a rehearsal

  detail::VariableCell& cell() const { return variable->cell(); }
  kernels::StepGradient step_gradient() const {
    if (order) return {gradient->slices()->values, &*order};
    return {gradient->tensor()};
  }
};

struct Optimizer::State {
  const UpdateRule& rule;
  Hyperparameters hyperparameters = {};
  std::int64_t iterations = 0;
  SlotTable slots = {};
  std::vector<Update> updates = {};   // kept between steps for its memory

  /// Throws before anything changes.
  void step(std::span<Update> updates, const std::optional<Variable>& global_step);

 private:
  void rehearse(std::span<Update> updates, std::size_t i, const Coefficients& c);
  void find_memory(Update& u);
  void run(Update& u, const Coefficients& c) noexcept;
};

/// Throws where the gradient, which is not none, cannot be one of the variable.
void check(const Gradient& g, const Variable& v);

}  // namespace tapedeck
