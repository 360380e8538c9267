// Functions composed of ops compute halves in f32, so that no intermediate result is rounded or overflows.
#pragma once
#include "op/primitives.h"

namespace tapedeck {

/// Returns f(x). If x is f16 or bf16, f runs on x in f32, and its result is rounded to the dtype of x.
template <class F> Tensor halves_in_f32(const Tensor& x, const F& f) {
  if (!is_half(x.dtype())) return f(x);
  return astype(f(astype(x, DType::f32)), x.dtype());
}

}   // namespace tapedeck
