// Pixels moved between the axes of images, and the windows of images as rows. All dtypes, patches f32 and
// f64.
#pragma once
#include "tapedeck/ops/conv.h"

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

struct PatchOptions {
  HeightWidth window;
  HeightWidth strides = 1;            // from one patch to the next
  HeightWidth dilation = 1;           // from one pixel of a patch to the next
  Padding padding = Padding::valid;   // of zeros
};
/// What a window reads of images [..., height, width, channels], row by row: [..., rows, columns, window ·
/// channels].
TAPEDECK_EXPORT Tensor extract_image_patches(const Tensor& x, const PatchOptions& options);

struct VolumePatchOptions {
  DepthHeightWidth window;
  DepthHeightWidth strides = 1;
  DepthHeightWidth dilation = 1;
  Padding3d padding = Padding::valid;
};
/// The same of volumes [..., depth, height, width, channels].
TAPEDECK_EXPORT Tensor extract_volume_patches(const Tensor& x, const VolumePatchOptions& options);

}   // namespace tapedeck
