// Convolutions without a matrix of columns: in several groups of channels, whose products of matrices would
// be narrow, and of volumes, whose windows are many short lines. As in conv.h; there is something to
// multiply.
#pragma once
#include "kernels/nn/conv.h"

namespace tapedeck::kernels::grouped_conv {

void conv(const Conv& c, const Tensor& x, const Tensor& filters, Tensor& y);
/// For strides of one.
void conv_input_gradient(const Conv& c, const Tensor& dy, const Tensor& filters, Tensor& dx);
void conv_filter_gradient(const Conv& c, const Tensor& x, const Tensor& dy, Tensor& dfilters);

}   // namespace tapedeck::kernels::grouped_conv
