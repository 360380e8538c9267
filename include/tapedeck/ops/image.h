// Images [batch, height, width, channels]. f32 and f64.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

}  // namespace tapedeck
