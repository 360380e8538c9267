// Random tensors from a key. A key determines the same numbers on every machine and with any number of
// threads (normal numbers: up to rounding between instruction sets). Generator: Philox4x32-10, Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3", SC11.
#pragma once
#include "tapedeck/operand.h"
#include "tapedeck/random_key.h"

namespace tapedeck::random {

/// Standard normal numbers (Box–Muller). Like all functions here, throws ShapeError for a negative extent,
/// and DTypeError unless dtype is f32 or f64.
TAPEDECK_EXPORT Tensor normal(const Shape& shape, Key key, DType dtype = default_dtype());
/// Normal numbers truncated to two standard deviations, by inverting the truncated distribution function:
/// none are clipped. Their variance is 0.774.
TAPEDECK_EXPORT Tensor truncated_normal(const Shape& shape, Key key, DType dtype = default_dtype());
/// Uniformly distributed in [low, high). Throws ArgumentError unless low < high and high - low is finite.
TAPEDECK_EXPORT Tensor uniform(const Shape& shape, Key key, double low = 0, double high = 1,
                               DType dtype = default_dtype());
/// A random permutation of 0, …, n - 1, i64.
TAPEDECK_EXPORT Tensor permutation(std::int64_t n, Key key);

}   // namespace tapedeck::random
