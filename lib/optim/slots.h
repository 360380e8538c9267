// SlotTable: which slots an optimizer keeps for which variable.
#pragma once
#include <array>
#include <vector>

#include "optim/rules.h"
#include "tape/variable.h"

namespace tapedeck {

/// The index of the master, which follows the slots of the rule. The master is the f32 value of an f16 or
/// bf16 variable, in which small steps accumulate; each step sets the variable to the rounded master.
inline constexpr std::size_t kMaster = kMaxSlots;
inline constexpr std::string_view kMasterName = "master";
/// A variable's slots, by their index in the rule's list; undefined if missing. The slots of an f16 or bf16
/// variable belong to its master.
using Slots = std::array<Tensor, kMaxSlots + 1>;

/// Which slots of the rule an optimizer with these hyperparameters uses.
std::array<bool, kMaxSlots> present_slots(const UpdateRule& rule, const Hyperparameters& h);

class SlotTable {
 public:
  struct Entry {
    std::uint64_t variable;   // its id
    std::weak_ptr<detail::VariableCell> cell;
    Slots values;
    std::array<std::uint64_t, kMaxSlots + 1> restored = {};   // restore ids, see restore()
  };

  /// Null if the variable has none. Valid until the next call of another function.
  Slots* find(std::uint64_t variable);
  /// Reserves memory, so that put() cannot throw for n more variables.
  void reserve(std::size_t n) { entries_.reserve(entries_.size() + n); }
  void put(detail::VariableCell& cell, Slots slots) noexcept { entry(cell).values = std::move(slots); }
  /// Sets a slot from a checkpoint, unless it was restored under a higher id. Throws if there is no memory.
  void restore(detail::VariableCell& cell, std::size_t slot, const Tensor& value, std::uint64_t restore_id);
  /// Removes the entries of variables that no longer exist.
  void drop_ended() noexcept;
  /// In ascending order of variable ids.
  std::span<const Entry> entries() const { return entries_; }

 private:
  std::vector<Entry>::iterator place_of(std::uint64_t variable);
  Entry& entry(detail::VariableCell& cell);   // inserts one if there is none

  std::vector<Entry> entries_;
  // The index after the entry found last, since each step visits the variables in the same order.
  std::size_t next_ = 0;
};

}   // namespace tapedeck
