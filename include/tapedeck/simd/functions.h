// Functions that the library computes, with the machine's instruction set, for vectors of a user's program.
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

/// x[i] becomes f(x[i]), or f(x[i], y[i]), for n elements of up to 64 bytes.
TAPEDECK_EXPORT void apply(VectorFunction f, float* x, const float* y, int n);
TAPEDECK_EXPORT void apply(VectorFunction f, double* x, const double* y, int n);

}   // namespace tapedeck::kernels
