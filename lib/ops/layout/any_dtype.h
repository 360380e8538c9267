// Kernels that move elements of any dtype.
#pragma once
#include "tapedeck/op.h"

namespace tapedeck {

/// The same kernel, for all dtypes: it looks at the size of elements alone, and the op's rule is made of ops.
constexpr Kernel moves(Kernel k) {
  k.takes = Takes::any;
  return k;
}

}   // namespace tapedeck
