// Depthwise convolution and dilation: windows over images, separately for each channel. f32 or f64. Results
// do not depend on the number of threads.
#pragma once
#include "kernels/nn/window.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// x is [images, height, width, channels], filters [rows, columns, channels] and y [images, outputs, outputs,
/// channels].
struct Depthwise {
  Window2d window;
  std::int64_t images, channels;
};

/// y = Σ x · filters over the cells of a window.
void depthwise(const Depthwise& g, const Tensor& x, const Tensor& filters, Tensor& y);
void depthwise_input_gradient(const Depthwise& g, const Tensor& dy, const Tensor& filters, Tensor& dx);
void depthwise_filter_gradient(const Depthwise& g, const Tensor& x, const Tensor& dy, Tensor& dfilters);

/// y = max(x + filters) over the window's cells inside of the image; there is at least one. NaN if any sum is
/// NaN.
void dilation(const Depthwise& g, const Tensor& x, const Tensor& filters, Tensor& y);
/// The flat indices, i64, of the elements of x and of filters whose sum is the first of the largest sums.
void dilation_positions(const Depthwise& g, const Tensor& x, const Tensor& filters, Tensor& of_x,
                        Tensor& of_filters);

}   // namespace tapedeck::kernels
