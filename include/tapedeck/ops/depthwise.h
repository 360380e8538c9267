// Ops on images [..., height, width, channels] with filters for each channel. f32 and f64.
#pragma once
#include "tapedeck/ops/conv.h"

namespace tapedeck {

/// conv2d where each channel has filters of its own: they are [rows, columns, in, multiplier], and the
/// result has in · multiplier channels. groups are not read.
TAPEDECK_EXPORT Tensor depthwise_conv2d(const Tensor& x, const Tensor& filters,
                                        const Conv2dOptions& options = {});

/// Morphological dilation: the largest of x plus filters [rows, columns, channels] in each window of images
/// [..., height, width, channels]; the gradient goes to the first such cell. groups and layout are not read.
TAPEDECK_EXPORT Tensor dilation2d(const Tensor& x, const Tensor& filters, const Conv2dOptions& options = {});

}   // namespace tapedeck
