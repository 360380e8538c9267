// Slots. In: an update rule and variables. Out: the tensors that the rule keeps for each variable.
#include "optim/slots.h"

#include <algorithm>

namespace tapedeck {

std::array<bool, kMaxSlots> present_slots(const UpdateRule& rule, const Hyperparameters& h) {
  std::array<bool, kMaxSlots> present = {};
  const std::span<const SlotSpec> specs = named(rule.slots);
  for (std::size_t i = 0; i < specs.size(); ++i)
    present[i] = !specs[i].exists || specs[i].exists(h);
  return present;
}

std::vector<SlotTable::Entry>::iterator SlotTable::place_of(std::uint64_t variable) {
  return std::lower_bound(entries_.begin(), entries_.end(), variable,
                          [](const Entry& e, std::uint64_t id) { return e.variable < id; });
}

SlotTable::Entry& SlotTable::entry(detail::VariableCell& cell) {
  const auto at = place_of(cell.id);
  if (at != entries_.end() && at->variable == cell.id) return *at;
  return *entries_.insert(at, {cell.id, cell.weak_from_this(), {}});
}

Slots* SlotTable::find(std::uint64_t variable) {
  if (next_ >= entries_.size() || entries_[next_].variable != variable)
    next_ = static_cast<std::size_t>(place_of(variable) - entries_.begin());
  if (next_ == entries_.size() || entries_[next_].variable != variable) return nullptr;
  return &entries_[next_++].values;
}

void SlotTable::restore(detail::VariableCell& cell, std::size_t slot, const Tensor& value,
                        std::uint64_t restore_id) {
  Entry& e = entry(cell);
  if (e.values[slot].defined() && restore_id < e.restored[slot]) return;
  e.values[slot] = value;
  e.restored[slot] = restore_id;
}

void SlotTable::drop_ended() noexcept {
  std::erase_if(entries_, [](const Entry& e) { return e.cell.expired(); });
}

}   // namespace tapedeck
