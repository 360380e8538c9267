// Running sums and products along an axis. In: tensors. Out: tensors of their shape.
#include "tapedeck/ops/scan.h"

#include "tapedeck/op.h"

namespace tapedeck {

std::span<const Op> scan_ops() { return {}; }

}  // namespace tapedeck
