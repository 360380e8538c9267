// The table of update rules, and functions that read its entries.
#pragma once
#include <typeinfo>
#include <vector>

#include "tapedeck/schedule.h"
#include "tapedeck/update_rule.h"

namespace tapedeck {

/// A rule of the library, and the options that an optimizer with this rule is made from.
struct RuleEntry {
  UpdateRule rule;
  const std::type_info* options;
  bool (*is_for)(const void* options);   // null: for all options of this type that no later rule is for
  Scheduled (*get[kMaxHyperparameters])(const void* options) = {};   // read the hyperparameters from options
};

std::span<const RuleEntry> rule_entries();
/// Throws ArgumentError for a name that is not in the table.
const UpdateRule& find_rule(std::string_view name);
/// The entry for options of this type. Throws InternalError if there is none.
const RuleEntry& find_entry(const std::type_info& type, const void* options);

/// The entries of a list before the first one without a name.
template <class Entry, std::size_t n> std::span<const Entry> named(const Entry (&list)[n]) {
  std::size_t count = 0;
  while (count < n && !list[count].name.empty())
    ++count;
  return {list, count};
}

/// The index of a name in such a list; the length of the list if it is missing.
template <class Entry> std::size_t index_of(std::span<const Entry> list, std::string_view name) {
  std::size_t i = 0;
  while (i < list.size() && list[i].name != name)
    ++i;
  return i;
}

/// The names of the entries of a list: "a, b, c".
template <class List> std::string listed(const List& list) {
  std::string names;
  for (const auto& entry : list)
    names.append(names.empty() ? "" : ", ").append(entry.name);
  return names;
}

/// Whether the rule supports variables of this dtype.
inline bool takes(const UpdateRule& rule, DType t) {
  if (is_half(t)) t = DType::f32;
  if (!rule.by_rows()) return rule.takes(t);
  return t == DType::f32 ? rule.rows.f32 != nullptr : t == DType::f64 && rule.rows.f64;
}

}   // namespace tapedeck
