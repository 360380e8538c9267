// Windows of images and volumes, flattened into rows. f32 and f64.
#pragma once
#include "tapedeck/ops/window.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

struct PatchOptions {
  HeightWidth window;
  HeightWidth strides = 1;            // step between patches
  HeightWidth dilation = 1;           // step between pixels of a patch
  Padding padding = Padding::valid;   // with zeros
};
/// Extracts the windows of images [..., height, width, channels]: the result is [..., rows, columns, window ·
/// channels], with each window in row-major order.
TAPEDECK_EXPORT Tensor extract_image_patches(const Tensor& x, const PatchOptions& options);

struct VolumePatchOptions {
  DepthHeightWidth window;
  DepthHeightWidth strides = 1;
  DepthHeightWidth dilation = 1;
  Padding3d padding = Padding::valid;
};
/// The same for volumes [..., depth, height, width, channels].
TAPEDECK_EXPORT Tensor extract_volume_patches(const Tensor& x, const VolumePatchOptions& options);

}   // namespace tapedeck
