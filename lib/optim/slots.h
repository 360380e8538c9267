// SlotTable: which slots an optimizer keeps for which variable.
#pragma once
#include <array>
#include <vector>

#include "optim/rules.h"
#include "tape/variable.h"

namespace tapedeck {

/// Behind the slots of the rule: the value in f32 of a variable of f16 or bf16, which gets it rounded. Small
/// steps add up in it.
inline constexpr std::size_t kMaster = kMaxSlots;
inline constexpr std::string_view kMasterName = "master";
/// A variable's slots, by their place in the rule's list; undefined where there is none. Those of a variable
/// of f16 or bf16 belong to its master.
using Slots = std::array<Tensor, kMaxSlots + 1>;

/// Which slots an optimizer with these hyperparameters has.
std::array<bool, kMaxSlots> present_slots(const UpdateRule& rule, const Hyperparameters& h);

class SlotTable {
 public:
  struct Entry {
    std::uint64_t variable;   // its id
    std::weak_ptr<detail::VariableCell> cell;
    Slots values;
    std::array<std::uint64_t, kMaxSlots + 1> restored = {};   // under which id
  };

  /// Null where the variable has none. Valid until the next call of another function.
  Slots* find(std::uint64_t variable);
  /// Makes room for n variables to be put without throwing.
  void reserve(std::size_t n) { entries_.reserve(entries_.size() + n); }
  void put(detail::VariableCell& cell, Slots slots) noexcept { entry(cell).values = std::move(slots); }
  /// A slot from a checkpoint, unless there is one of a higher id. Throws where there is no memory.
  void restore(detail::VariableCell& cell, std::size_t slot, const Tensor& value, std::uint64_t restore_id);
  /// Forgets variables that have ended.
  void drop_ended() noexcept;
  /// Ascending by variable.
  std::span<const Entry> entries() const { return entries_; }

 private:
  std::vector<Entry>::iterator place_of(std::uint64_t variable);
  Entry& entry(detail::VariableCell& cell);   // there, or made

  std::vector<Entry> entries_;
  std::size_t next_ = 0;   // behind what was found last: variables come in their order from step to step
};

}   // namespace tapedeck
