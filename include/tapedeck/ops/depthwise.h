// Per-channel filters for images [..., height, width, channels]. Floating-point dtypes; mixed ones are
// promoted. Errors are as in conv2d.
#pragma once
#include "tapedeck/ops/conv.h"

namespace tapedeck {

/// Depthwise convolution: each channel has its own filters [rows, columns, in, multiplier]; the result has in
/// · multiplier channels, of which channel k · multiplier + q is x's channel k filtered by filters[..., k,
/// q]. Options as for conv2d; `groups` is ignored.
TAPEDECK_EXPORT Tensor depthwise_conv2d(const Tensor& x, const Tensor& filters,
                                        const Conv2dOptions& options = {});

/// Morphological dilation: the maximum, over each window of images [..., height, width, channels], of x plus
/// filters [rows, columns, channels]. The gradient goes to the first element that attains the maximum. Padded
/// elements are ignored; a window of padding alone throws ShapeError. Options as for conv2d; `groups` is
/// ignored.
TAPEDECK_EXPORT Tensor dilation2d(const Tensor& x, const Tensor& filters, const Conv2dOptions& options = {});

}   // namespace tapedeck
