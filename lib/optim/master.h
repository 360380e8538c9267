// Masters: the f32 copies of f16 and bf16 variables, which steps change instead of these.
#pragma once
#include "tapedeck/gradient.h"

namespace tapedeck {

/// Sets each element of the master that does not round to the variable's value to that value: the variable
/// was assigned since.
void follow(Tensor& master, const Tensor& value) noexcept;
/// Converts f16 and bf16, whose range is small and whose sums lose terms, to f32; returns other x unchanged.
Tensor in_f32(const Tensor& x);
/// A dense or sparse gradient like g, with `numbers` for its values.
Gradient with_numbers(const Gradient& g, const Tensor& numbers);

}   // namespace tapedeck
