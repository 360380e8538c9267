// Running sums and products along an axis.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

}  // namespace tapedeck
