// Comparisons, logic and selection in groups, which represent bools as the numbers 0 and 1.
#pragma once
#include "compile/ir/program.h"

namespace tapedeck::compiled {

/// The kernel that computes the node in a group, on operands and results of the dtype of the group; null if
/// the node is no comparison, logic or selection.
const kernels::MapKernel* logic_kernel(const OpNode& node);
/// Whether the node converts bools to another dtype.
bool is_cast_of_bools(const OpNode& node);

}   // namespace tapedeck::compiled
