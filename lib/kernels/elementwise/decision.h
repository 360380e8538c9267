// Comparisons, logic and selection as compiled functions compute them: in groups, on numbers alone, and on
// few elements, without the set-up of the kernels.
#pragma once
#include "kernels/elementwise/map.h"

namespace tapedeck::kernels {

/// Sets n bools. Bit i of `singles`: operand i has one element. An op of one operand gets it twice.
using DecisionLoop = void (*)(const std::byte* a, const std::byte* b, bool* y, std::int64_t n,
                              unsigned singles);

/// The loops of one op.
struct Decision {
  MapKernel numbers;   // of operands and results of one dtype, in which bools are the numbers 0 and 1
  DecisionLoop f32 = nullptr, f64 = nullptr, i64 = nullptr, boolean = nullptr;   // by dtype of the operands
};

}   // namespace tapedeck::kernels
