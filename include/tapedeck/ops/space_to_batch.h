// Ops that move pixels of images between spatial, batch and channel axes. All dtypes.
#pragma once
#include "tapedeck/ints.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Pads each spatial axis of x [batch, space…, …] with before[i] and after[i] zeros and divides it into
/// blocks of block[i]; `block` has an entry for each spatial axis. The elements at one position of all blocks
/// form a separate batch entry: the result is [batch · blocks, (space + before + after) / block…, …]. Throws
/// ShapeError unless the blocks divide the padded axes, and ArgumentError if a block is below 1 or padding
/// negative.
TAPEDECK_EXPORT Tensor space_to_batch_nd(const Tensor& x, Ints block, Ints before, Ints after);
/// The inverse of space_to_batch_nd; finally removes before[i] and after[i] entries from each spatial axis.
/// Throws ShapeError unless the blocks divide the batch and the axes have these entries, and ArgumentError as
/// space_to_batch_nd does.
TAPEDECK_EXPORT Tensor batch_to_space_nd(const Tensor& x, Ints block, Ints before, Ints after);

/// Images [..., height, width, channels] in which each block × block pixels become one pixel of block² ·
/// channels channels. Throws ShapeError if the rank is below 3 or blocks do not divide height and width, and
/// ArgumentError unless block is 1 to 2^15.
TAPEDECK_EXPORT Tensor space_to_depth(const Tensor& x, std::int64_t block);
/// The inverse of space_to_depth. Also throws ShapeError unless block² divides the channels.
TAPEDECK_EXPORT Tensor depth_to_space(const Tensor& x, std::int64_t block);

}   // namespace tapedeck
