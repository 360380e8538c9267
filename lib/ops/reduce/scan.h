// The attributes of the scans, and products of runs.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

struct ScanAttrs {
  int axis;
  bool exclusive, reverse;   // the axis counts from the end
};

struct LogSumAttrs {
  bool reverse;
};

/// For each entry along the last axis the product of those before it in its run, with its derivatives.
/// follows, of rank 1 and of the dtype of x, is 0 where a run begins, else 1.
Tensor product_before_in_run(const Tensor& x, const Tensor& follows);

}   // namespace tapedeck
