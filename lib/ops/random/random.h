// The attributes of uniform, normal, truncated_normal and permutation.
#pragma once
#include "tapedeck/ops/random.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

struct UniformAttrs {
  random::Key key;
  Spec spec;
  double low, high;
};
struct NormalAttrs {
  random::Key key;
  Spec spec;
};
struct PermutationAttrs {
  random::Key key;
  std::int64_t n;
};

}   // namespace tapedeck
