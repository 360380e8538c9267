// Products of tensors by an equation.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

}  // namespace tapedeck
