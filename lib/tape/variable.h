// What handles of one variable share.
#pragma once
#include <string>
#include <string_view>

#include "tapedeck/variable.h"

namespace tapedeck::detail {

/// What variables without a name are called.
inline constexpr std::string_view kUnnamed = "variable";

struct VariableCell : std::enable_shared_from_this<VariableCell> {
  std::string name;
  bool trainable;
  std::uint64_t id;        // order of creation
  std::uint64_t replica;   // that has made it, or 0
  Tensor value;
  Tensor handle;   // shape-only; what tapes track as the variable, whatever its value
  Constraint constraint;
};

/// For messages: `variable "w"`, or, of one without a name, `variable #3`, by the order of creation.
std::string label(std::string_view name, std::uint64_t id);
std::string label(const VariableCell& cell);
/// The same where a message does not say what the variable is: `variable #3 f32[4,8]`.
std::string described(const VariableCell& cell);

/// Throws unless value may become the variable's; the message begins with `what`.
void check_value(const VariableCell& cell, std::string_view what, const Tensor& value);
/// Throws GradientError on the thread of a replica that shares the variable with others, which may read or
/// change it meanwhile.
void check_not_shared(const VariableCell& cell, std::string_view what);

/// Tells the thread's watchers of variables that this one is read or updated.
void note_access(VariableCell& cell);
/// Throws ArgumentError where one is listed twice: a step would change it twice.
void check_distinct(std::span<const Variable> variables, std::string_view caller);

}   // namespace tapedeck::detail
