// A step: first everything is checked, then all memory is allocated, then variables and slots change. If a
// user's function takes part, as a constraint or a rule of tensors, the step first runs on copies, so that
// everything is unchanged if the function throws.
#include "optim/step.h"

#include "core/cast.h"
#include "core/format.h"
#include "core/storage.h"
#include "op/recorder.h"
#include "optim/master.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

// Gives x a new id, and memory without another owner.
void make_own(Tensor& x) {
  if (x.unique())
    renew(x);
  else
    x = copy_of(x);
}

void check_counter(const Variable& v) {
  const Spec spec{v.dtype(), v.shape()};
  if (spec.dtype != DType::i32 && spec.dtype != DType::i64)
    throw_error<DTypeError>("apply_gradients: global_step is {}; use i32 or i64", spec);
  if (spec.shape.ndim() > 0)
    throw_error<ShapeError>("apply_gradients: global_step is {}; use a scalar", spec);
}

Tensor one_more(const Tensor& count) {
  const RecordingScope unrecorded(nullptr);
  return count + 1;
}

Tensor constrained(const detail::VariableCell& cell, const Tensor& value) {
  const RecordingScope unrecorded(nullptr);
  const Tensor result = cell.constraint(value);
  check_value(cell, "constraint", result);
  return share(result);
}

}   // namespace

// Adds the missing slots, with their initial values. A tensor that a rule's own function returns may be
// shared.
Slots Optimizer::State::complete(Slots slots, const Tensor& variable, const Hyperparameters& h) const {
  if (is_half(variable.dtype()) && !slots[kMaster].defined()) slots[kMaster] = cast(variable, DType::f32);
  const Tensor& value = is_half(variable.dtype()) ? slots[kMaster] : variable;
  for (std::size_t i = 0; i < kMaxSlots; ++i) {
    if (!present[i] || slots[i].defined()) continue;
    const SlotSpec& spec = rule.slots[i];
    slots[i] = spec.initial ? spec.initial(value, h) : zeros_like(value);
    if (!slots[i].defined() || (rule.by_rows() && slots[i].spec() != value.spec()))
      throw_error<InternalError>("{}: slot \"{}\" begins as {}, but the variable is {}", rule.name, spec.name,
                                 slots[i].defined() ? to_string(slots[i].spec()) : "undefined", value.spec());
  }
  return slots;
}

void Optimizer::State::change(Tensor& x, Slots& own, const Update& u, const Step& s) const noexcept {
  const std::span<Tensor> slots = std::span(own).first(kMaxSlots);
  if (!rule.measure) return update_rows(x, slots, u.step_gradient(), s);
  Step scaled = s;
  rule.scale(scaled, measure_rows(rule.measure, x, slots, u.step_gradient(), s));
  update_rows(x, slots, u.step_gradient(), scaled);
}

void Optimizer::State::change_by_tensors(Tensor& x, Slots& own, const Update& u, const Step& s) const {
  const RecordingScope unrecorded(nullptr);
  const std::span<Tensor> slots = std::span(own).first(named(rule.slots).size());
  const Tensor before = x;
  const Slots slots_before = own;
  const Gradient gradient = u.numbers.defined() ? with_numbers(*u.gradient, u.numbers) : *u.gradient;
  if (const IndexedSlices* g = gradient.slices())
    rule.sparse(s, x, slots, sum_duplicates(*g));
  else
    rule.dense(s, x, slots, gradient.tensor());

  if (x.defined() && x.spec() == before.spec())
    check_value(u.cell(), rule.name, u.is_half() ? cast(x, u.cell().value.dtype()) : x);
  else
    check_value(u.cell(), rule.name, x);
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (present[i] && (!own[i].defined() || own[i].spec() != slots_before[i].spec()))
      throw_error<InternalError>("{}: slot \"{}\" was {}, but the rule changed it to {}", rule.name,
                                 rule.slots[i].name, slots_before[i].spec(),
                                 own[i].defined() ? to_string(own[i].spec()) : "undefined");
  if (x.id() == before.id()) x = share(x);
}

void Optimizer::State::try_step(std::span<Update> all, std::size_t i, const Step& s) {
  Update& u = all[i];
  const detail::VariableCell& cell = u.cell();
  const Update* earlier = nullptr;   // the latest one of the same variable
  for (const Update& e : all.first(i))
    if (*e.variable == *u.variable) earlier = &e;
  Tensor value = earlier ? earlier->value : cell.value;
  const Slots* known = earlier ? &*earlier->slots : slots.find(cell.id);
  Slots own = complete(known ? *known : Slots(), value, s.h);
  if (u.is_half()) {
    own[kMaster] = copy_of(own[kMaster]);
    follow(own[kMaster], value);
  }
  Tensor x = u.is_half() ? own[kMaster] : value;
  if (rule.by_rows()) {
    if (!u.is_half()) x = copy_of(x);
    for (std::size_t k = 0; k < kMaxSlots; ++k)
      if (own[k].defined()) make_own(own[k]);
    change(x, own, u, s);
  } else {
    change_by_tensors(x, own, u, s);
  }
  if (u.is_half()) own[kMaster] = x;
  value = u.is_half() ? cast(x, value.dtype()) : std::move(x);
  u.value = cell.constraint ? constrained(cell, value) : std::move(value);
  u.slots = std::move(own);
}

void Optimizer::State::find_slots(Update& u, const Hyperparameters& h) {
  const detail::VariableCell& cell = u.cell();
  const Slots* known = slots.find(cell.id);
  for (std::size_t i = 0; i <= kMaster; ++i)
    if ((i == kMaster ? u.is_half() : present[i]) && !(known && (*known)[i].defined())) {
      u.slots = complete(known ? *known : Slots(), cell.value, h);
      return;
    }
}

void Optimizer::State::find_memory(Update& u) {
  const detail::VariableCell& cell = u.cell();
  Slots* own = u.slots ? &*u.slots : slots.find(cell.id);
  if (own)
    for (Tensor& s : *own)
      if (s.defined()) make_own(s);
  if (!cell.value.unique()) u.value = allocate(cell.value.spec());
}

void Optimizer::State::run(Update& u, const Step& s) noexcept {
  detail::VariableCell& cell = u.cell();
  if (needs_trial(u)) {
    cell.value = std::move(u.value);
    return;
  }
  Slots none;
  Slots* found = slots.find(cell.id);
  Slots& own = found ? *found : none;
  if (u.is_half())
    follow(own[kMaster], cell.value);
  else if (u.value.defined())
    copy_elements(cell.value, u.value);
  if (u.value.defined())
    cell.value = std::move(u.value);
  else
    renew(cell.value);
  if (!u.is_half()) return change(cell.value, own, u, s);
  change(own[kMaster], own, u, s);
  cast(own[kMaster], cell.value);
}

// Allocates the memory for variables and slots, and runs all code of the user's that a step calls.
void Optimizer::State::prepare_updates(std::span<Update> all, const Step& s) {
  slots.drop_ended();
  if (!pending.empty())
    for (const Update& u : all)
      adopt(u.cell());
  for (Update& u : all)
    if (const Tensor& g = u.gradient->slices() ? u.gradient->slices()->values : u.gradient->tensor();
        is_half(g.dtype()))
      u.numbers = cast(g, DType::f32);
  if (rule.by_rows())
    for (Update& u : all)
      if (const IndexedSlices* slices = u.gradient->slices()) u.order = kernels::order_rows(slices->indices);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (needs_trial(all[i]))
      try_step(all, i, s);
    else
      find_slots(all[i], s.h);
  }
  // From here on no code of the user's runs that could copy a tensor, so that uniquely owned tensors remain
  // so.
  for (Update& u : all)
    if (!needs_trial(u)) find_memory(u);
  slots.reserve(all.size());
}

void Optimizer::State::step(std::span<Update> all, const std::optional<Variable>& global_step) {
  for (const Update& u : all)
    check(rule, *u.gradient, *u.variable);
  if (global_step) check_counter(*global_step);
  Step s{values(), iterations + 1, scalars, {}, rule.rows, rule.others};
  if (rule.prepare) rule.prepare(s);
  if (rule.by_rows())
    for (const Update& u : all)
      check_rows(rule, s, *u.variable);

  prepare_updates(all, s);
  Tensor count;
  if (global_step) count = one_more(global_step->cell().value);
  for (const Update& u : all)
    note_access(u.cell());
  if (global_step) note_access(global_step->cell());

  for (Update& u : all)
    if (u.slots) slots.put(u.cell(), std::move(*u.slots));
  for (Update& u : all)
    run(u, s);
  if (global_step) global_step->cell().value = std::move(count);
  if (rule.finish) rule.finish(s);
  scalars = s.scalars;
  ++iterations;
}

}   // namespace tapedeck
