// Samples images at computed positions, one for each pixel of an output frame; also the adjoints. f32 or f64.
// Results do not depend on the number of threads.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// x is [stacks, images, height, width, channels] and y [stacks, frames, rows, columns, channels].
struct Frames {
  std::int64_t stacks, images, height, width, channels;
  std::int64_t frames, rows, columns;
  bool nearest;     // the nearest pixel, instead of bilinear interpolation of four
  double outside;   // the value read outside of an image
};

// Frame i is the box y1, x1, y2, x2, in fractions of height - 1 and width - 1, of image indices[i]. Indices
// are in range. A position outside of the image reads only `outside`.
void sample_boxes(const Frames& f, const Tensor& x, const Tensor& boxes, const Tensor& indices, Tensor& y);
void sample_boxes_adjoint(const Frames& f, const Tensor& dy, const Tensor& boxes, const Tensor& indices,
                          Tensor& dx);

// Pixel (x, y) of frame i reads image i at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with k = c0 x +
// c1 y + 1. A row of `transforms` is a0 a1 a2 b0 b1 b2 c0 c1; one for each frame, or one for all.
void sample_transformed(const Frames& f, const Tensor& x, const Tensor& transforms, Tensor& y);
void sample_transformed_adjoint(const Frames& f, const Tensor& dy, const Tensor& transforms, Tensor& dx);

}   // namespace tapedeck::kernels
