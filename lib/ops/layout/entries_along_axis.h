// Selects entries along one axis by a list of their indices.
#pragma once
#include "ops/axes.h"
#include "tapedeck/ops/array.h"
#include "tapedeck/ops/index.h"

namespace tapedeck {

/// x with only these entries along `axis`, counted from 0. gather has an IndexedSlices gradient along the
/// first axis; an extra axis before it keeps the gradient dense.
inline Tensor entries(const Tensor& x, const std::vector<std::int64_t>& list, int axis) {
  if (axis > 0) return gather(x, tensor(list), axis);
  return squeeze(gather(expand_dims(x, 0), tensor(list), 1), 0);
}

}   // namespace tapedeck
