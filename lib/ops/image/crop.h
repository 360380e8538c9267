// The attributes of crops and projective transforms.
#pragma once
#include "kernels/image/image_sample.h"
#include "ops/nn/window.h"
#include "tapedeck/ops/crop.h"

namespace tapedeck {

// Images [images, height, width, channels] and frames of one size; both may have leading axes.
struct FrameAttrs {
  std::int64_t images, height, width;
  HeightWidth size;
  Interpolation method;
  double outside = 0;

  // These attributes with 0 outside the images, which makes sampling linear in the images.
  FrameAttrs linear() const {
    FrameAttrs a = *this;
    a.outside = 0;
    return a;
  }
  kernels::Frames of(const Tensor& x, std::int64_t frames) const {
    return {front_of(x, 4).size(),
            images,
            height,
            width,
            channels_of(x),
            frames,
            size.height,
            size.width,
            method == Interpolation::nearest,
            outside};
  }
};

}   // namespace tapedeck
