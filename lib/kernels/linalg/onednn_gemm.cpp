#include "kernels/linalg/onednn_gemm.h"

#include <new>

#include <oneapi/dnnl/dnnl.h>

#include "core/onednn.h"
#include "kernels/linalg/one_openmp_thread.h"
#include "tapedeck/error.h"

namespace tapedeck::kernels::onednn {
namespace {

constexpr std::int64_t kLeast = 1 << 20;   // least multiplications: OpenBLAS has kernels for small matrices

}   // namespace

bool gemm(const Product<float>& p) {
  static const bool is_on = !onednn_version().empty();
  if (p.m * p.n < (kLeast + p.k - 1) / p.k || !is_on) return false;   // no overflow: below 2^31; k is not 0
  const OneOpenmpThread guard;
  const dnnl_status_t status = dnnl_sgemm(p.a_transposed ? 'T' : 'N', p.b_transposed ? 'T' : 'N', p.m, p.n,
                                          p.k, 1, p.a, p.lda, p.b, p.ldb, p.add ? 1.0f : 0.0f, p.y, p.ldy);
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  if (status != dnnl_success) throw InternalError("matrix product: oneDNN fails");
  return true;
}

}   // namespace tapedeck::kernels::onednn
