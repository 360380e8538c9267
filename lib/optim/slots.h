// SlotTable: which slots an optimizer keeps for which variable.
#pragma once
#include <vector>

#include "autodiff/variable.h"
#include "optim/update_rule.h"

namespace tapedeck {

/// The slots of a variable with that value, before its first step.
Slots initial_slots(const UpdateRule& rule, const Tensor& value);

class SlotTable {
 public:
  /// Null where the variable has none. Valid until the next call of another function.
  Slots* find(std::uint64_t variable);
  /// Makes room for n variables to be put without throwing.
  void reserve(std::size_t n) { entries_.reserve(entries_.size() + n); }
  void put(detail::VariableCell& cell, Slots slots) noexcept;
  /// Forgets variables that have ended.
  void drop_ended() noexcept;

 private:
  struct Entry {
    std::uint64_t variable;   // its id
    std::weak_ptr<detail::VariableCell> cell;
    Slots values;
  };
  std::vector<Entry>::iterator place_of(std::uint64_t variable);

  std::vector<Entry> entries_;   // ascending by variable
};

}  // namespace tapedeck
