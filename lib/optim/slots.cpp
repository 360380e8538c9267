// Slots. In: an update rule and variables. Out: the tensors that the rule keeps beside each variable.
#include "optim/slots.h"

#include <algorithm>

namespace tapedeck {

Slots initial_slots(const UpdateRule& rule, const Tensor& value) {
  Slots slots;
  for (std::size_t i = 0; i < kMaxSlots && !rule.slots[i].name.empty(); ++i) slots[i] = full_like(value, rule.slots[i].initial);
  return slots;
}

std::vector<SlotTable::Entry>::iterator SlotTable::place_of(std::uint64_t variable) {
  return std::lower_bound(entries_.begin(), entries_.end(), variable, [](const Entry& e, std::uint64_t id) { return e.variable < id; });
}

Slots* SlotTable::find(std::uint64_t variable) {
  const auto at = place_of(variable);
  return at != entries_.end() && at->variable == variable ? &at->values : nullptr;
}

void SlotTable::put(detail::VariableCell& cell, Slots slots) noexcept {
  const auto at = place_of(cell.id);
  if (at != entries_.end() && at->variable == cell.id) at->values = std::move(slots);
  else entries_.insert(at, {cell.id, cell.weak_from_this(), std::move(slots)});
}

void SlotTable::drop_ended() noexcept {
  std::erase_if(entries_, [](const Entry& e) { return e.cell.expired(); });
}

}  // namespace tapedeck
