// Convolutions over 1, 2 or 3 spatial axes, f32 or f64, and their gradients with respect to input and
// filters. conv.cpp chooses between oneDNN, grouped_conv.h and matrix products.
#pragma once
#include "kernels/nn/window.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// x is [images, depth, height, width, in], filters [planes, rows, columns, in / groups, out] and y [images,
/// outputs, outputs, outputs, out]. Group g of the input channels produces group g of the output channels.
/// window.cells() · in and out are below 2^31.
struct Conv {
  Window3d window;
  std::int64_t images, in, out, groups = 1;

  std::int64_t weights() const { return window.cells() * (in / groups) * out; }
  double work() const {
    return static_cast<double>(images * window.outputs()) *
           static_cast<double>(weights());   // multiplications
  }

  friend bool operator==(const Conv&, const Conv&) = default;
};

// Results do not depend on the number of threads.
void conv(const Conv& c, const Tensor& x, const Tensor& filters, Tensor& y);
void conv_input_gradient(const Conv& c, const Tensor& dy, const Tensor& filters, Tensor& dx);
void conv_filter_gradient(const Conv& c, const Tensor& x, const Tensor& dy, Tensor& dfilters);

// The following two functions do not read c.out, and require a single group.
/// y [images, outputs, outputs, outputs, cells · in] holds the elements that the window reads for each
/// output, row by row (im2col).
void patches(const Conv& c, const Tensor& x, Tensor& y);
/// The adjoint: adds each patch to the elements that it was read from (col2im).
void patches_gradient(const Conv& c, const Tensor& dy, Tensor& dx);

}   // namespace tapedeck::kernels
