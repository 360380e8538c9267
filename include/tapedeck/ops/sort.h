// Sorting, searching and selecting by order.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

}  // namespace tapedeck
