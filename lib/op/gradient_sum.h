// Accumulation of gradient terms in rules.
#pragma once
#include "tapedeck/gradient.h"

namespace tapedeck {

/// Returns a + b, computed by the op add.
Tensor sum_of(Gradient&& a, Tensor&& b);

/// Adds term to sum; sets sum to term if sum is none.
inline void add_to(Gradient& sum, Tensor term) {
  if (sum.defined()) [[unlikely]]
    sum = sum_of(std::move(sum), std::move(term));
  else
    sum = std::move(term);
}

}   // namespace tapedeck
