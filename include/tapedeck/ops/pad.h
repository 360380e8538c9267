// Tensors with something around them. All dtypes.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// x with a number around it: before[i] and after[i] times along axis i.
TAPEDECK_EXPORT Tensor pad(const Tensor& x, const Shape& before, const Shape& after, double value = 0);
/// reflect: mirrored about the first and last entry, which are not repeated; symmetric: about the edge, so
/// that they are.
enum class Mirror : std::uint8_t { reflect, symmetric };
/// x with what it shows in mirrors around it. Throws ShapeError where more is asked for than there is.
TAPEDECK_EXPORT Tensor mirror_pad(const Tensor& x, const Shape& before, const Shape& after,
                                  Mirror mirror = Mirror::reflect);

}   // namespace tapedeck
