// Kernels that move elements of any dtype.
#pragma once
#include "tapedeck/op.h"

namespace tapedeck {

/// Marks a kernel as accepting every dtype: it depends on the size of elements only, and the op's rule
/// consists of ops.
constexpr Kernel moves(Kernel k) {
  k.dtypes = KernelDtypes::all;
  return k;
}

}   // namespace tapedeck
