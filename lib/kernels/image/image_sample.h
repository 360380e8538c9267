// Images read at positions, each of which belongs to a pixel of a frame. In: f32 or f64. Out: what the frames
// show, or its adjoint. Results do not depend on the number of threads.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// x is [stacks, images, height, width, channels] and y [stacks, frames, rows, columns, channels].
struct Frames {
  std::int64_t stacks, images, height, width, channels;
  std::int64_t frames, rows, columns;
  bool nearest;     // the pixel next to a position, instead of between the four around it
  double outside;   // what is read there
};

// A frame shows the box y1, x1, y2, x2, in shares of height - 1 and width - 1, of the image indices[frame],
// which is in range; a position outside the image reads nothing else.
void sample_boxes(const Frames& f, const Tensor& x, const Tensor& boxes, const Tensor& indices, Tensor& y);
void sample_boxes_adjoint(const Frames& f, const Tensor& dy, const Tensor& boxes, const Tensor& indices,
                          Tensor& dx);

// Frame i shows image i through the rows a0 a1 a2 b0 b1 b2 c0 c1 of transforms, one for each or one for all.
void sample_transformed(const Frames& f, const Tensor& x, const Tensor& transforms, Tensor& y);
void sample_transformed_adjoint(const Frames& f, const Tensor& dy, const Tensor& transforms, Tensor& dx);

}   // namespace tapedeck::kernels
