// Functions implemented in the library, with the machine's instruction set, for SIMD batches in user
// programs.
#pragma once
#include "tapedeck/error.h"

namespace tapedeck::kernels {

enum class VectorFunction {
  cbrt,
  log2,
  log10,
  pow,
  asin,
  acos,
  atan,
  atan2,
  hypot,
  asinh,
  acosh,
  atanh,
  erf,
  erfc
};

/// Replaces x[i] by f(x[i]), or f(x[i], y[i]), for n elements of at most 64 bytes in total.
TAPEDECK_EXPORT void apply(VectorFunction f, float* x, const float* y, int n);
TAPEDECK_EXPORT void apply(VectorFunction f, double* x, const double* y, int n);

}   // namespace tapedeck::kernels
