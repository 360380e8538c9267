// Entries repeated, rotated and reversed along axes. All dtypes.
#pragma once
#include "tapedeck/ops/reduce.h"

namespace tapedeck {

/// Elements moved on by shift along each of the axes; what leaves at one end comes in at the other.
TAPEDECK_EXPORT Tensor roll(const Tensor& x, std::int64_t shift, const Axes& axes);
/// Each entry along axis `count` times, one after the other; or entry i counts[i] times.
TAPEDECK_EXPORT Tensor repeat(const Tensor& x, std::int64_t count, int axis = 0);
TAPEDECK_EXPORT Tensor repeat(const Tensor& x, const std::vector<std::int64_t>& counts, int axis = 0);
/// The first lengths[b] entries along sequence_axis in the opposite order, for each entry b along batch_axis;
/// the rest stays. lengths is i32 or i64 of rank 1.
TAPEDECK_EXPORT Tensor reverse_sequence(const Tensor& x, const Tensor& lengths, int sequence_axis,
                                        int batch_axis = 0);

}   // namespace tapedeck
