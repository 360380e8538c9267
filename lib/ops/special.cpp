// Special functions of elements: error functions, gamma, beta, zeta and Bessel functions.
#include "tapedeck/ops/special.h"

#include "tapedeck/op.h"

namespace tapedeck {

std::span<const Op> special_ops() { return {}; }

}  // namespace tapedeck
