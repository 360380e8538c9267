// Comparisons, logic and selection in groups, where bools are the numbers 0 and 1.
#pragma once
#include "compile/ir/program.h"

namespace tapedeck::compiled {

/// The kernel by which a group computes the node, of operands and results of the dtype of the group; null
/// where it has none.
const kernels::MapKernel* logic_kernel(const OpNode& node);
/// Whether the node changes the dtype alone, of bools.
bool is_cast_of_bools(const OpNode& node);

}   // namespace tapedeck::compiled
