// Ops that repeat, rotate and reverse entries along axes. All dtypes.
#pragma once
#include "tapedeck/ints.h"
#include "tapedeck/ops/reduce.h"

namespace tapedeck {

/// Rotates elements by `shift` positions along each of the axes: those shifted past the end reappear at the
/// start. A negative shift rotates the other way. If an axis is named several times, its shifts add up.
TAPEDECK_EXPORT Tensor roll(const Tensor& x, std::int64_t shift, const Axes& axes);
/// Rotates by shifts[i] positions along axis axes[i]; {1} is a list of one shift. Throws ShapeError if there
/// are not as many shifts as axes.
TAPEDECK_EXPORT Tensor roll(const Tensor& x, Ints shifts, const Axes& axes);
inline Tensor roll(const Tensor& x, std::initializer_list<std::int64_t> shifts, const Axes& axes) {
  return roll(x, Ints(shifts), axes);
}
/// Repeats each entry along `axis` consecutively, `count` times; or entry i counts[i] times, where {3} is a
/// list of one count. The gradients of the copies add up. Throws ShapeError if a count is negative or the
/// number of counts is not the extent.
TAPEDECK_EXPORT Tensor repeat(const Tensor& x, std::int64_t count, int axis = 0);
TAPEDECK_EXPORT Tensor repeat(const Tensor& x, Ints counts, int axis = 0);
inline Tensor repeat(const Tensor& x, std::initializer_list<std::int64_t> counts, int axis = 0) {
  return repeat(x, Ints(counts), axis);
}
/// For each entry b along batch_axis, reverses the first lengths[b] entries along sequence_axis and keeps the
/// others. lengths are integers [entries]. Throws ShapeError for another shape, if a length is negative or
/// exceeds the extent, or if both axes are the same.
TAPEDECK_EXPORT Tensor reverse_sequence(const Tensor& x, const Tensor& lengths, int sequence_axis,
                                        int batch_axis = 0);

}   // namespace tapedeck
