// The f32 copies of variables of f16 and bf16, which steps change in their place.
#pragma once
#include "tapedeck/gradient.h"

namespace tapedeck {

/// An element of the master that does not round to the variable's value becomes this: somebody has set it.
void follow(Tensor& master, const Tensor& value) noexcept;
/// x, in f32 where it is of f16 or bf16, whose range is small and whose sums lose terms.
Tensor in_f32(const Tensor& x);
/// A gradient, dense or sparse, with these numbers for its own.
Gradient with_numbers(const Gradient& g, const Tensor& numbers);

}   // namespace tapedeck
