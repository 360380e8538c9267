// Pooling: what a window takes of each channel of an image. In: tensors [images, height, width, channels] of one dtype, f32
// or f64. Every window has at least one cell inside the image. Results do not depend on the number of threads.
#pragma once
#include "kernels/window.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

struct Pool2d {
  Window2d window;
  std::int64_t images, channels;
};

/// The largest cell; NaN where there is one.
void max_pool2d(const Pool2d& p, const Tensor& x, Tensor& y);
// Image i of the others belongs to image i % x_images of x. Where the largest cell is NaN, so are all derivatives.
/// dx = 0, and then dy is added where x has the first largest cell.
void max_pool2d_scatter(const Pool2d& p, const Tensor& dy, const Tensor& x, std::int64_t x_images, Tensor& dx);
/// v's element where x has the first largest cell.
void max_pool2d_gather(const Pool2d& p, const Tensor& v, const Tensor& x, std::int64_t x_images, Tensor& y);
/// The mean of the cells inside the image.
void avg_pool2d(const Pool2d& p, const Tensor& x, Tensor& y);
void avg_pool2d_gradient(const Pool2d& p, const Tensor& dy, Tensor& dx);

}  // namespace tapedeck::kernels
