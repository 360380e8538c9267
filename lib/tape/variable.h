// VariableCell: the state that all handles of a variable share.
#pragma once
#include <string>
#include <string_view>

#include "tapedeck/variable.h"

namespace tapedeck::detail {

/// The name of variables that were given none.
inline constexpr std::string_view kUnnamed = "variable";

struct VariableCell : std::enable_shared_from_this<VariableCell> {
  std::string name;
  bool trainable;
  std::uint64_t id;        // numbered in the order of creation
  std::uint64_t replica;   // the replica that created it, or 0
  Tensor value;
  Tensor handle;   // shape-only tensor that recorders track in place of the variable, whatever its value
  Constraint constraint;
};

/// For messages: `variable "w"`, or `variable #3`, by the order of creation, if it has no name.
std::string label(std::string_view name, std::uint64_t id);
std::string label(const VariableCell& cell);
/// Like label, with the spec of a variable without a name, for messages that do not contain the spec:
/// `variable #3 f32[4,8]`.
std::string described(const VariableCell& cell);

/// Throws unless `value` may be assigned to the variable: defined, and of its dtype and shape. The message
/// begins with `what`.
void check_value(const VariableCell& cell, std::string_view what, const Tensor& value);
/// Throws GradientError on a replica's thread unless the replica created the variable: other replicas may
/// read or change it concurrently.
void check_not_shared(const VariableCell& cell, std::string_view what);

/// Reports to the thread's VariableWatchers that the variable is read or updated.
void note_access(VariableCell& cell);
/// Throws ArgumentError if a variable is listed twice: a step would change it twice.
void check_distinct(std::span<const Variable> variables, std::string_view caller);

}   // namespace tapedeck::detail
