// Derivatives as tensors.
#pragma once
#include <vector>

#include "tapedeck/gradient.h"

namespace tapedeck::test {

/// The dense tensor of each derivative; undefined for slices and for none.
inline std::vector<Tensor> tensors_of(const std::vector<Gradient>& derivatives) {
  std::vector<Tensor> all;
  for (const Gradient& g : derivatives)
    all.push_back(g.tensor());
  return all;
}

}   // namespace tapedeck::test
