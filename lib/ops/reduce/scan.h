// The attributes of the scans, and products within runs.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

struct ScanAttrs {
  int axis;   // counted from the end
  bool exclusive, reverse;
};

struct LogSumAttrs {
  bool reverse;
};

/// Returns, for each entry along the last axis, the product of the entries before it in its run;
/// differentiable. follows, of rank 1 and of the dtype of x, is 0 where a run begins, else 1.
Tensor product_before_in_run(const Tensor& x, const Tensor& follows);

}   // namespace tapedeck
