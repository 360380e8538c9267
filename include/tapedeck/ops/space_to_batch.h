// Move pixels of images between spatial, batch and channel axes. All dtypes.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

// For the first two functions, x is [batch, space…, …]; `block` has an entry for each spatial axis.

/// Pads each spatial axis with before[i] and after[i] zeros and divides it into blocks of block[i]. The
/// elements at one position of all blocks form a separate batch entry. Throws ShapeError unless the blocks
/// divide the padded axes.
TAPEDECK_EXPORT Tensor space_to_batch_nd(const Tensor& x, const Shape& block, const Shape& before,
                                         const Shape& after);
/// The inverse; finally removes before[i] and after[i] entries from each spatial axis.
TAPEDECK_EXPORT Tensor batch_to_space_nd(const Tensor& x, const Shape& block, const Shape& before,
                                         const Shape& after);

/// Images [..., height, width, channels] in which each block × block pixels become one pixel of block² ·
/// channels channels.
TAPEDECK_EXPORT Tensor space_to_depth(const Tensor& x, std::int64_t block);
/// The inverse.
TAPEDECK_EXPORT Tensor depth_to_space(const Tensor& x, std::int64_t block);

}   // namespace tapedeck
