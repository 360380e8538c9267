// Convolutions of rows, images and volumes. In: tensors of one dtype, f32 or f64, and their geometry. Out:
// the product, or its gradient in one of its two operands. These three functions are all that another
// implementation has to offer.
#pragma once
#include "kernels/nn/window.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// x is [images, depth, height, width, in], filters [planes, rows, columns, in / groups, out] and y [images,
/// outputs, outputs, outputs, out]. The channels fall into groups: the g-th of those in makes the g-th of
/// those out. window.cells() · in and out are below 2^31.
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

// c.out is not read, and there is one group.
/// y [images, outputs, outputs, outputs, cells · in]: what the window reads, row by row.
void patches(const Conv& c, const Tensor& x, Tensor& y);
/// Its adjoint: each patch is added where it was read.
void patches_gradient(const Conv& c, const Tensor& dy, Tensor& dx);

}   // namespace tapedeck::kernels
