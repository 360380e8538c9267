// Cross products. Floating-point dtypes; others throw DTypeError. Mixed dtypes are promoted.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

/// The cross product a × b along the last axis, which must have extent 3; the other axes broadcast.
/// Throws ShapeError for other shapes.
TAPEDECK_EXPORT Tensor cross(Operand a, Operand b);

}   // namespace tapedeck
