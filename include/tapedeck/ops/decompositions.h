// Factorisations of matrices, solutions and determinants. f32 and f64; leading axes are batches.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck {

}  // namespace tapedeck
