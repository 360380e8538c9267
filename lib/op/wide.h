// What functions composed of ops compute halves in: f32, where no step in between rounds or overflows.
#pragma once
#include "op/primitives.h"

namespace tapedeck {

/// f(x), computed in f32 where x is of f16 or bf16, and rounded to the dtype of x once.
template <class F> Tensor in_wide(const Tensor& x, const F& f) {
  if (!is_half(x.dtype())) return f(x);
  return astype(f(astype(x, DType::f32)), x.dtype());
}

}   // namespace tapedeck
