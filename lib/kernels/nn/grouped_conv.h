// Direct convolutions, without im2col, with the arguments of conv.h and at least one product. For several
// groups, whose matrix products would be narrow, and for volumes, whose windows consist of many short rows.
#pragma once
#include "kernels/nn/conv.h"

namespace tapedeck::kernels::grouped_conv {

void conv(const Conv& c, const Tensor& x, const Tensor& filters, Tensor& y);
/// Precondition: all strides are 1.
void conv_input_gradient(const Conv& c, const Tensor& dy, const Tensor& filters, Tensor& dx);
void conv_filter_gradient(const Conv& c, const Tensor& x, const Tensor& dy, Tensor& dfilters);

}   // namespace tapedeck::kernels::grouped_conv
