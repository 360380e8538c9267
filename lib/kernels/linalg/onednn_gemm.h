// f32 products by oneDNN, if the library is built with it.
#pragma once
#include "kernels/linalg/gemm.h"

namespace tapedeck::kernels::onednn {

/// Returns whether it has computed the product: it declines products for which BLAS is faster. Throws
/// bad_alloc without memory for oneDNN's buffers.
#ifdef TAPEDECK_ONEDNN
bool gemm(const MatrixProduct<float>& p);
#else
inline bool gemm(const MatrixProduct<float>&) { return false; }
#endif

}   // namespace tapedeck::kernels::onednn
