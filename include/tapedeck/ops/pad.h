// Padding of tensors. All dtypes.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Pads axis i with `value`: before[i] entries at the start and after[i] at the end.
TAPEDECK_EXPORT Tensor pad(const Tensor& x, const Shape& before, const Shape& after, double value = 0);
/// reflect: mirrors about the first and last entry, which are not repeated; symmetric: mirrors about the
/// edge, so that they are repeated.
enum class Mirror : std::uint8_t { reflect, symmetric };
/// Pads x with its mirror image. Throws ShapeError if the padding exceeds what the mirrored axis provides.
TAPEDECK_EXPORT Tensor mirror_pad(const Tensor& x, const Shape& before, const Shape& after,
                                  Mirror mirror = Mirror::reflect);

}   // namespace tapedeck
