// How a rule adds to the gradient that it is given.
#pragma once
#include "tapedeck/gradient.h"

namespace tapedeck {

/// a + b by the op add.
Tensor sum_of(Gradient&& a, Tensor&& b);

/// sum = sum + term, or term where sum is none.
inline void add_to(Gradient& sum, Tensor term) {
  if (sum.defined()) [[unlikely]]
    sum = sum_of(std::move(sum), std::move(term));
  else
    sum = std::move(term);
}

}   // namespace tapedeck
