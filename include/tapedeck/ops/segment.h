// Sums, products and extremes over groups of rows.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

}  // namespace tapedeck
