// Convolutions by oneDNN, where the library is built with it. Each function says whether it has done the
// work: it leaves what is small, and what oneDNN is bad at, to the caller.
#pragma once
#include "kernels/nn/conv.h"

namespace tapedeck::kernels::onednn {

// As in conv.h. There is something to multiply.
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
