// Vector products. f32 and f64. Mixed dtypes are promoted; numbers take the dtype beside them.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// The vector product a × b along the last axis, which has 3 elements; the others broadcast.
TAPEDECK_EXPORT Tensor cross(Operand a, Operand b);

}   // namespace tapedeck
