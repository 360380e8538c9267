// The state of an optimizer, by name: to read, to save, and to restore.
#include <algorithm>

#include "core/format.h"
#include "optim/recorded.h"
#include "optim/saved_state.h"
#include "optim/step.h"

namespace tapedeck {
namespace {

constexpr std::string_view kIterations = "iterations";

// The index of a scalar in the rule's list; kMaxScalars for "iterations".
std::size_t find_scalar(const UpdateRule& rule, std::string_view name) {
  const std::span<const ScalarSpec> specs = named(rule.scalars);
  const std::size_t i = index_of(specs, name);
  if (i < specs.size()) return i;
  if (name == kIterations) return kMaxScalars;
  throw_error<ArgumentError>("{}: there is no number \"{}\"; use one of {}{}{}", rule.name, name, kIterations,
                             specs.empty() ? "" : ", ", listed(specs));
}

void check_scalar(const UpdateRule& rule, std::size_t i, double value) {
  if (i == kMaxScalars) whole_number(rule.name, kIterations, value);
}

void set_scalar(Scalars& scalars, std::int64_t& iterations, std::size_t i, double value) {
  if (i == kMaxScalars)
    iterations = static_cast<std::int64_t>(value);
  else
    scalars[i] = value;
}

std::string slot_of(std::string_view name, const std::string& variable) {
  return fmt::format("slot \"{}\" of variable \"{}\"", name, variable);
}

}   // namespace

std::size_t Optimizer::State::find_slot(std::string_view name) const {
  const std::span<const SlotSpec> specs = named(rule.slots);
  const std::size_t i = index_of(specs, name);
  if (i < specs.size() && present[i]) return i;
  if (name == kMasterName) return kMaster;
  std::vector<SlotSpec> there;
  for (std::size_t k = 0; k < specs.size(); ++k)
    if (present[k]) there.push_back(specs[k]);
  if (there.empty())
    throw_error<ArgumentError>("{}: there is no slot \"{}\"; this optimizer has no slots", rule.name, name);
  throw_error<ArgumentError>("{}: there is no slot \"{}\"; use one of {}", rule.name, name, listed(there));
}

void Optimizer::State::adopt(detail::VariableCell& cell) {
  for (const PendingSlot& p : pending)
    if (p.variable == cell.name) check_slot(rule, p.slot, cell, p.value);
  for (const PendingSlot& p : pending)
    if (p.variable == cell.name) slots.restore(cell, p.slot, p.value, p.restore_id);
  std::erase_if(pending, [&](const PendingSlot& p) { return p.variable == cell.name; });
}

Tensor Optimizer::slot(const Variable& v, std::string_view name) const {
  refuse_in_recording(state_->rule.name, slot_of(name, v.name()));
  state_->adopt(v.cell());
  const Slots* slots = state_->slots.find(v.id());
  const std::span<const SlotSpec> specs = named(state_->rule.slots);
  const std::size_t i = index_of(specs, name);
  if (!slots || (i == specs.size() && name != kMasterName)) return {};
  return (*slots)[i == specs.size() ? kMaster : i];
}

std::vector<std::string> Optimizer::slot_names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kMaxSlots; ++i)
    if (state_->present[i]) names.emplace_back(state_->rule.slots[i].name);
  std::sort(names.begin(), names.end());
  return names;
}

double Optimizer::scalar(std::string_view name) const {
  refuse_in_recording(state_->rule.name, fmt::format("number \"{}\"", name));
  const std::size_t i = find_scalar(state_->rule, name);
  return i == kMaxScalars ? static_cast<double>(state_->iterations) : state_->scalars[i];
}

SavedState Optimizer::state() const {
  refuse_in_recording(state_->rule.name, "its state");
  SavedState result = {.kind = std::string(name())};
  result.scalars.push_back({std::string(kIterations), static_cast<double>(iterations())});
  for (const ScalarSpec& spec : named(state_->rule.scalars))
    result.scalars.push_back({std::string(spec.name), scalar(spec.name)});
  for (const SlotTable::Entry& e : state_->slots.entries())
    if (const std::shared_ptr<detail::VariableCell> cell = e.cell.lock())
      for (std::size_t i = 0; i <= kMaster; ++i)
        if (e.values[i].defined())
          result.slots.push_back({Variable(cell), std::string(name_of_slot(state_->rule, i)), e.values[i]});
  return result;
}

std::vector<NamedTensor> Optimizer::variables() const {
  std::vector<NamedTensor> result;
  const SavedState s = state();
  for (const SavedScalar& n : s.scalars)
    result.push_back({fmt::format("{}/{}", name(), n.name), tensor(n.value, DType::f64)});
  for (const SlotValue& v : s.slots)
    result.push_back({fmt::format("{}/{}/{}", v.variable.name(), name(), v.slot), v.value});
  std::stable_sort(result.begin(), result.end(),
                   [](const NamedTensor& a, const NamedTensor& b) { return a.name < b.name; });
  return result;
}

void Optimizer::restore(const SavedState& state) { prepare_restore(state)(); }
Commit Optimizer::prepare_restore(const SavedState& state) {
  refuse_in_recording(state_->rule.name, "a state that is restored");
  State& own = *state_;
  check_kind(own.rule.name, state);
  if (!state.tensors.empty())
    throw_error<ArgumentError>("restore: {} has no tensor \"{}\"", own.rule.name,
                               state.tensors.begin()->first);
  Scalars scalars = own.scalars;
  std::int64_t iterations = own.iterations;
  std::array<bool, kMaxScalars + 1> given = {};
  for (const SavedScalar& n : state.scalars) {
    const std::size_t i = find_scalar(own.rule, n.name);
    check_scalar(own.rule, i, n.value);
    set_scalar(scalars, iterations, i, n.value);
    given[i] = true;
  }
  const auto need = [&](std::string_view name) {
    if (!given[find_scalar(own.rule, name)])
      throw_error<ArgumentError>("restore: number \"{}\" of {} is missing", name, own.rule.name);
  };
  need(kIterations);
  for (const ScalarSpec& spec : named(own.rule.scalars))
    need(spec.name);
  SlotTable slots;
  for (const SlotValue& v : state.slots) {
    const std::size_t i = own.find_slot(v.slot);
    check_slot(own.rule, i, v.variable.cell(), v.value);
    slots.restore(v.variable.cell(), i, v.value, 0);
  }
  return [&own, slots = std::move(slots), scalars, iterations]() mutable {
    own.slots = std::move(slots);
    own.scalars = scalars;
    own.iterations = iterations;
    own.restored = {};
    own.pending.clear();
  };
}

std::optional<Spec> Optimizer::slot_spec(const Variable& v, std::string_view slot) const {
  const std::size_t i = state_->find_slot(slot);
  if (!state_->rule.by_rows() && i != kMaster) return {};
  return Spec{computed_in(v.dtype()), v.shape()};
}

void Optimizer::restore_scalar(std::string_view name, double value, std::uint64_t restore_id) {
  refuse_in_recording(state_->rule.name, "a number that is restored");
  const std::size_t i = find_scalar(state_->rule, name);
  check_scalar(state_->rule, i, value);
  if (restore_id < state_->restored[i]) return;
  state_->restored[i] = restore_id;
  set_scalar(state_->scalars, state_->iterations, i, value);
}

void Optimizer::restore_slot(const Variable& v, std::string_view slot, const Tensor& value,
                             std::uint64_t restore_id) {
  refuse_in_recording(state_->rule.name, "a slot that is restored");
  const std::size_t i = state_->find_slot(slot);
  check_slot(state_->rule, i, v.cell(), value);
  state_->adopt(v.cell());
  state_->slots.restore(v.cell(), i, value, restore_id);
}

void Optimizer::restore_slot(std::string variable, std::string_view slot, Tensor value,
                             std::uint64_t restore_id) {
  refuse_in_recording(state_->rule.name, "a slot that is restored");
  const std::size_t i = state_->find_slot(slot);
  if (!value.defined())
    throw_error<ArgumentError>("restore: slot \"{}\" of \"{}\" is undefined", slot, variable);
  state_->pending.push_back({std::move(variable), i, std::move(value), restore_id});
}

std::vector<Tensor> Optimizer::weights() const {
  SavedState s = state();
  std::vector<Tensor> result = {tensor(iterations())};
  for (std::size_t i = 1; i < s.scalars.size(); ++i)
    result.push_back(tensor(s.scalars[i].value, DType::f64));
  for (SlotValue& v : s.slots)
    result.push_back(std::move(v.value));
  return result;
}

void Optimizer::set_weights(std::span<const Tensor> weights) {
  SavedState s = state();
  const std::size_t scalars = s.scalars.size();
  if (weights.size() != scalars + s.slots.size())
    throw_error<ArgumentError>("set_weights: {} tensors are given, but the optimizer has {}", weights.size(),
                               scalars + s.slots.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (i >= scalars)
      s.slots[i - scalars].value = weights[i];
    else if (weights[i].defined() && weights[i].size() == 1)
      s.scalars[i].value = weights[i].item();
    else
      throw_error<ArgumentError>("set_weights: tensor {} is the number \"{}\"; use a scalar", i,
                                 s.scalars[i].name);
  }
  restore(s);
}

}   // namespace tapedeck
