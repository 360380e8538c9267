// Random tensors from a key. The same key gives the same numbers on every machine and with any number of
// threads (normal ones: within rounding between instruction sets). Philox4x32-10: Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", SC11.
#pragma once
#include "tapedeck/operand.h"

namespace tapedeck::random {

/// Where the numbers come from. {.seed = 7} makes one; use every key once, and split it for more.
struct Key {
  std::uint64_t seed = 0, stream = 0;

  /// The i-th of as many independent keys as are wanted.
  TAPEDECK_EXPORT Key split(std::uint64_t i) const;
};

/// Standard normal numbers (Box–Muller). f32 or f64.
TAPEDECK_EXPORT Tensor normal(const Shape& shape, Key key, DType dtype = DType::f32);
/// Standard normal numbers within two standard deviations: what lies outside is left out, not moved to the
/// bounds. f32 or f64.
TAPEDECK_EXPORT Tensor truncated_normal(const Shape& shape, Key key, DType dtype = DType::f32);
/// Evenly distributed in [low, high). f32 or f64.
TAPEDECK_EXPORT Tensor uniform(const Shape& shape, Key key, double low = 0, double high = 1,
                               DType dtype = DType::f32);
/// 0 … n - 1 in random order, i64.
TAPEDECK_EXPORT Tensor permutation(std::int64_t n, Key key);

}   // namespace tapedeck::random
