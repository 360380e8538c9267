// The windows of images and volumes as rows. f32 and f64.
#pragma once
#include "tapedeck/ops/window.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

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
