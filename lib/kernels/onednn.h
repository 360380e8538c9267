// Convolutions by oneDNN, where the library is built with it. Each function says whether it has done the work: it leaves what is
// small, and what oneDNN is bad at, to the caller.
#pragma once
#include "kernels/conv.h"

namespace tapedeck::kernels::onednn {

// As in conv.h. There is something to multiply.
#ifdef TAPEDECK_ONEDNN
bool conv2d(const Conv2d& c, const float* x, const float* filters, float* y);
bool conv2d_input_gradient(const Conv2d& c, const float* dy, const float* filters, float* dx);
bool conv2d_filter_gradient(const Conv2d& c, const float* x, const float* dy, float* dfilters);
#else
inline bool conv2d(const Conv2d&, const float*, const float*, float*) { return false; }
inline bool conv2d_input_gradient(const Conv2d&, const float*, const float*, float*) { return false; }
inline bool conv2d_filter_gradient(const Conv2d&, const float*, const float*, float*) { return false; }
#endif

}  // namespace tapedeck::kernels::onednn
