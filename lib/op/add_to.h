// How a rule adds to the gradient that it is given.
#pragma once
#include "tapedeck/gradient.h"

namespace tapedeck {

/// sum = sum + term by the op add, or term where sum is none.
void add_to(Gradient& sum, Tensor term);

}   // namespace tapedeck
