// RegisterPlan: in which order machine code computes, and where each value is.
#pragma once
#include <vector>

#include "compile/machine/code.h"

namespace tapedeck::compiled {

struct RegisterPlan {
  /// The values to compute or to load, and the stores. What is computed rarely comes right before the node
  /// that chooses it.
  std::vector<LaneValue> order;
  int unroll = 1;   // how many vectors are computed at a time: 1, 2 or 4

  // By value; -1: none.
  std::vector<int> first_register;   // of `unroll` registers that hold the value
  std::vector<int> slot;             // on the stack, for spilled values
  std::vector<int> pinned;           // the register that holds a constant or a single in the whole loop
  int slots = 0;
};

RegisterPlan plan_registers(const Code& code, const VectorSet& set);

}   // namespace tapedeck::compiled
