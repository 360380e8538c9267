// What handles of one variable share.
#pragma once
#include <string>

#include "tapedeck/variable.h"

namespace tapedeck::detail {

struct VariableCell : std::enable_shared_from_this<VariableCell> {
  std::string name;
  bool trainable;
  std::uint64_t id;        // order of creation
  std::uint64_t replica;   // that has made it, or 0
  Tensor value;
  Tensor handle;   // shape-only; what tapes track as the variable, whatever its value
  Constraint constraint;
};

/// Throws unless value may become the variable's; the message begins with `what`.
void check_value(const VariableCell& cell, std::string_view what, const Tensor& value);
/// Throws GradientError on the thread of a replica that shares the variable with others, which may read or
/// change it meanwhile.
void check_not_shared(const VariableCell& cell, std::string_view what);

/// Tells the thread's watchers of variables that this one is read or updated.
void note_access(VariableCell& cell);

}   // namespace tapedeck::detail
