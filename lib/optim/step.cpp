// A step: all is checked, then all memory is found, and then variables and slots change. Variables with a constraint take
// the step on copies before, since what a user's function throws must find everything as it was.
#include "optim/step.h"

#include <cstring>

#include "autodiff/recorder.h"
#include "base/format.h"
#include "tapedeck/operators.h"
#include "tensor/storage.h"

namespace tapedeck {
namespace {

void copy(const Tensor& from, Tensor& to) {
  if (from.size()) std::memcpy(to.raw(), from.raw(), static_cast<std::size_t>(from.nbytes()));
}
Tensor copy_of(const Tensor& x) {
  Tensor own = allocate(x.spec());
  copy(x, own);
  return own;
}

// Memory that nobody else sees, under a new id.
void make_own(Tensor& x) {
  if (x.unique()) renew(x);
  else x = copy_of(x);
}

void check_counter(const Variable& v) {
  const Spec spec{v.dtype(), v.shape()};
  if (spec.dtype != DType::i32 && spec.dtype != DType::i64) throw_error<DTypeError>("apply_gradients: global_step \"{}\" is {}; use i32 or i64", v.name(), spec);
  if (spec.shape.ndim() > 0) throw_error<ShapeError>("apply_gradients: global_step \"{}\" is {}; use a scalar", v.name(), spec);
}

Tensor one_more(const Tensor& count) {
  const RecordingScope unrecorded(nullptr);
  return count + 1;
}

Tensor constrained(const detail::VariableCell& cell, const Tensor& value) {
  const RecordingScope unrecorded(nullptr);
  const Tensor result = cell.constraint(value);
  check_value(cell, "constraint", result);
  return share(result, result.shape());
}

}  // namespace

void Optimizer::State::rehearse(std::span<Update> all, std::size_t i, const Coefficients& c) {
  Update& u = all[i];
  const detail::VariableCell& cell = u.cell();
  const Update* earlier = nullptr;   // of the same variable
  for (const Update& e : all.first(i)) if (*e.variable == *u.variable) earlier = &e;
  Tensor value = copy_of(earlier ? earlier->value : cell.value);
  const Slots* known = earlier ? &*earlier->slots : slots.find(cell.id);
  Slots own = known ? *known : initial_slots(rule, value);
  for (Tensor& s : own) if (s.defined()) make_own(s);
  rule.update(value, own, u.step_gradient(), c);
  u.value = constrained(cell, value);
  u.slots = std::move(own);
}

void Optimizer::State::find_memory(Update& u) {
  const detail::VariableCell& cell = u.cell();
  if (rule.has_slots()) {
    if (Slots* known = slots.find(cell.id)) {
      for (Tensor& s : *known) if (s.defined()) make_own(s);
    } else {
      u.slots = initial_slots(rule, cell.value);
    }
  }
  if (!cell.value.unique()) u.value = allocate(cell.value.spec());
}

void Optimizer::State::run(Update& u, const Coefficients& c) noexcept {
  detail::VariableCell& cell = u.cell();
  if (cell.constraint) {
    cell.value = std::move(u.value);
    return;
  }
  if (u.value.defined()) {
    copy(cell.value, u.value);
    cell.value = std::move(u.value);
  } else {
    renew(cell.value);
  }
  Slots none;
  rule.update(cell.value, rule.has_slots() ? *slots.find(cell.id) : none, u.step_gradient(), c);
}

void Optimizer::State::step(std::span<Update> all, const std::optional<Variable>& global_step) {
  for (const Update& u : all) check(*u.gradient, *u.variable);
  if (global_step) check_counter(*global_step);
  const Coefficients c = rule.coefficients(hyperparameters, static_cast<double>(iterations + 1));

  slots.drop_ended();
  for (Update& u : all) if (const IndexedSlices* s = u.gradient->slices()) u.order = kernels::order_rows(s->indices);
  for (std::size_t i = 0; i < all.size(); ++i) if (all[i].cell().constraint) rehearse(all, i, c);
  // From here on no code of the user's runs, so what is held by nobody else stays so.
  for (Update& u : all) if (!u.cell().constraint) find_memory(u);
  slots.reserve(all.size());
  Tensor count;
  if (global_step) count = one_more(global_step->cell().value);
  for (const Update& u : all) note_access(u.cell());
  if (global_step) note_access(global_step->cell());

  for (Update& u : all) if (u.slots) slots.put(u.cell(), std::move(*u.slots));
  for (Update& u : all) run(u, c);
  if (global_step) global_step->cell().value = std::move(count);
  ++iterations;
}

}  // namespace tapedeck
