// Attributes of ops on windows, for their samples.
#pragma once
#include "ops/nn/window.h"

namespace tapedeck::test {

inline OwnedAttrs volume_window(DepthHeightWidth input, DepthHeightWidth size, DepthHeightWidth strides = 1,
                                const Padding3d& padding = Padding::valid, DepthHeightWidth dilation = 1,
                                std::int64_t groups = 1, int axes = 3) {
  return Attrs(WindowAttrs{window_of(input, size, strides, dilation, padding), axes, groups});
}
inline OwnedAttrs window(HeightWidth input, HeightWidth size, HeightWidth strides = 1,
                         const Padding& padding = Padding::valid, HeightWidth dilation = 1,
                         std::int64_t groups = 1) {
  return volume_window(in_volume(input), in_volume(size), in_volume(strides), in_volume(padding),
                       in_volume(dilation), groups, 2);
}
inline OwnedAttrs row_window(std::int64_t input, std::int64_t size, std::int64_t stride = 1,
                             const Padding& padding = Padding::valid, std::int64_t dilation = 1,
                             std::int64_t groups = 1) {
  return volume_window(in_row(input), in_row(size), in_row(stride), in_row(padding), in_row(dilation), groups,
                       1);
}

}   // namespace tapedeck::test
