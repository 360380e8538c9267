// Padding of tensors. All dtypes.
#pragma once
#include "tapedeck/ints.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Pads axis i with `value`: before[i] entries at the start and after[i] at the end. The gradient is the
/// output gradient without the padding. Throws ShapeError if a number is negative or their count differs from
/// the rank.
TAPEDECK_EXPORT Tensor pad(const Tensor& x, Ints before, Ints after, double value = 0);
/// reflect: mirrors about the first and last entry, which are not repeated; symmetric: mirrors about the
/// edge, so that they are repeated.
enum class Mirror : std::uint8_t { reflect, symmetric };
/// Pads x with its mirror image; the gradients of repeated entries add up. Throws ShapeError as pad does, and
/// if the padding exceeds the extent (symmetric) or the extent - 1 (reflect).
TAPEDECK_EXPORT Tensor mirror_pad(const Tensor& x, Ints before, Ints after, Mirror mirror = Mirror::reflect);

}   // namespace tapedeck
