// Terms of one gradient in a rule that adds to what it is given.
#pragma once
#include "tapedeck/gradient.h"
#include "tapedeck/operators.h"

namespace tapedeck {

/// By an op, where the rule has a term as a tensor of its own.
inline void add_to(Gradient& sum, Tensor term) {
  if (sum.defined())
    sum = std::move(sum).dense() + std::move(term);
  else
    sum = std::move(term);
}

}   // namespace tapedeck
