// Convolutions by oneDNN, if the library is built with it. Each function returns whether it has computed the
// result: it declines small convolutions, and convolutions for which oneDNN is slow.
#pragma once
#include "kernels/nn/conv.h"

namespace tapedeck::kernels::onednn {

// Arguments as in conv.h, with at least one product.
#ifdef TAPEDECK_ONEDNN
bool conv(const Conv& c, const float* x, const float* filters, float* y);
bool conv_input_gradient(const Conv& c, const float* dy, const float* filters, float* dx);
bool conv_filter_gradient(const Conv& c, const float* x, const float* dy, float* dfilters);
#else
inline bool conv(const Conv&, const float*, const float*, float*) { return false; }
inline bool conv_input_gradient(const Conv&, const float*, const float*, float*) { return false; }
inline bool conv_filter_gradient(const Conv&, const float*, const float*, float*) { return false; }
#endif

}   // namespace tapedeck::kernels::onednn
