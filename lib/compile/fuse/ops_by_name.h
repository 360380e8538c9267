// Finds ops of the library by name.
#pragma once
#include <map>
#include <span>
#include <string_view>

#include "tapedeck/op.h"

namespace tapedeck::compiled {

/// Maps each op of the library whose name is in the list to the value listed with the name. To be called once
/// per list: the map is never freed, since destructors of static objects may still record functions.
template <class T>
const std::map<const Op*, T>& ops_by_name(std::span<const std::pair<std::string_view, T>> list) {
  auto& known = *new std::map<const Op*, T>;
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      for (const auto& [name, value] : list)
        if (op->name == name) known.emplace(op, value);
  return known;
}

}   // namespace tapedeck::compiled
