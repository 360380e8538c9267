// Promotes the dtypes of two operands, for ops with attributes.
#pragma once
#include <array>

#include "tapedeck/ops/array.h"

namespace tapedeck {

/// Returns both operands in their common dtype, or unchanged if one is undefined or not trainable: the op
/// then reports the error.
inline std::array<Tensor, 2> promoted(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return {a, b};
  if (a.dtype() == b.dtype() || !is_trainable(a.dtype()) || !is_trainable(b.dtype())) return {a, b};
  const DType both = promote(a.dtype(), b.dtype());
  return {astype(a, both), astype(b, both)};
}

}   // namespace tapedeck
