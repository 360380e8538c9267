// Pixels moved between the axes of images. All dtypes.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

// In the first two, x is [batch, space…, …], with as many axes of space as block has entries.

/// Each axis of space, with before[i] and after[i] zeros around it, cut into blocks of block[i]: what lies at
/// one position of all blocks becomes a batch of its own. Throws ShapeError where blocks do not divide the
/// padded axes.
TAPEDECK_EXPORT Tensor space_to_batch_nd(const Tensor& x, const Shape& block, const Shape& before,
                                         const Shape& after);
/// The opposite, with before[i] and after[i] entries cut off in the end.
TAPEDECK_EXPORT Tensor batch_to_space_nd(const Tensor& x, const Shape& block, const Shape& before,
                                         const Shape& after);

/// Images [..., height, width, channels] with each block × block pixels as one of block² · channels channels.
TAPEDECK_EXPORT Tensor space_to_depth(const Tensor& x, std::int64_t block);
/// The opposite.
TAPEDECK_EXPORT Tensor depth_to_space(const Tensor& x, std::int64_t block);

}   // namespace tapedeck
