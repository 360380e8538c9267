// Two operands of ops with attributes, whose dtypes may differ.
#pragma once
#include <array>

#include "tapedeck/ops/array.h"

namespace tapedeck {

/// Both in the dtype that they promote to; where one is undefined or has no derivative, as they are, for the
/// op to refuse.
inline std::array<Tensor, 2> promoted(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return {a, b};
  if (a.dtype() == b.dtype() || !is_trainable(a.dtype()) || !is_trainable(b.dtype())) return {a, b};
  const DType both = promote(a.dtype(), b.dtype());
  return {astype(a, both), astype(b, both)};
}

}   // namespace tapedeck
