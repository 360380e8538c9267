// Convolutions of images. In: tensors of one dtype, f32 or f64, and their geometry. Out: the product, or its gradient in one
// of its two operands. These three functions are all that another implementation has to offer.
#pragma once
#include "kernels/window.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// x is [images, height, width, in], filters [rows, columns, in, out] and y [images, outputs, outputs, out].
/// window.cells() · in and out are below 2^31.
struct Conv2d {
  Window2d window;
  std::int64_t images, in, out;

  friend bool operator==(const Conv2d&, const Conv2d&) = default;
};

// Results do not depend on the number of threads.
void conv2d(const Conv2d& c, const Tensor& x, const Tensor& filters, Tensor& y);
void conv2d_input_gradient(const Conv2d& c, const Tensor& dy, const Tensor& filters, Tensor& dx);
void conv2d_filter_gradient(const Conv2d& c, const Tensor& x, const Tensor& dy, Tensor& dfilters);

// c.out is not read.
/// y [images, outputs, outputs, cells · in]: what the window reads, row by row.
void patches(const Conv2d& c, const Tensor& x, Tensor& y);
/// Its adjoint: each patch is added where it was read.
void patches_gradient(const Conv2d& c, const Tensor& dy, Tensor& dx);

}  // namespace tapedeck::kernels
