// Windows of images and volumes, flattened into rows. Floating-point dtypes.
#pragma once
#include "tapedeck/ops/window.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Options of extract_image_patches.
struct PatchOptions {
  HeightWidth window;
  HeightWidth strides = 1;            // step between patches
  HeightWidth dilation = 1;           // step between pixels of a patch
  Padding padding = Padding::valid;   // with zeros
};
/// Extracts the windows of images [..., height, width, channels]: the result is [..., rows, columns, window ·
/// channels], with each window in row-major order. The gradient of a pixel is the sum over the windows that
/// contain it. Throws ShapeError if the rank is below 3 or the window, dilated, is larger than the padded
/// image, and ArgumentError if window, strides or dilation are below 1 or padding is negative.
TAPEDECK_EXPORT Tensor extract_image_patches(const Tensor& x, const PatchOptions& options);

/// Options of extract_volume_patches; see PatchOptions.
struct VolumePatchOptions {
  DepthHeightWidth window;
  DepthHeightWidth strides = 1;
  DepthHeightWidth dilation = 1;
  Padding3d padding = Padding::valid;
};
/// extract_image_patches for volumes [..., depth, height, width, channels]: the result is [..., planes, rows,
/// columns, window · channels].
TAPEDECK_EXPORT Tensor extract_volume_patches(const Tensor& x, const VolumePatchOptions& options);

}   // namespace tapedeck
