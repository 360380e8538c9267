// Quantisation in floating point. In: tensors and ranges. Out: the nearest of so many levels.
#include "tapedeck/ops/quantize.h"

#include "tapedeck/op.h"

namespace tapedeck {

std::span<const Op> quantize_ops() { return {}; }

}  // namespace tapedeck
