// f32 products by oneDNN's sgemm on the calling thread, for sizes at which it is faster than OpenBLAS.
#include "kernels/linalg/onednn_gemm.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>

#include <oneapi/dnnl/dnnl.h>

#include "core/onednn.h"
#include "kernels/linalg/one_openmp_thread.h"
#include "tapedeck/error.h"

namespace tapedeck::kernels::onednn {
namespace {

/// The range of products for which oneDNN is faster than OpenBLAS: at least `least` multiplications, and
/// extents up to `widest`. With AVX-512, OpenBLAS has kernels for small matrices, and is slower for large
/// ones. Without AVX-512, oneDNN does not pack matrices, which is faster while they fit into the L2 cache.
struct Range {
  std::int64_t least, widest;
};
Range range() {
  if (has_avx512()) return {1 << 20, std::numeric_limits<std::int32_t>::max()};
  return {1 << 15, 256};
}

// Each kind of product may have separate kernels.
void note_kernels(const MatrixProduct<float>& p) {
  static std::atomic<unsigned> kinds{0};
  const unsigned kind = 1u << (p.a_transposed + 2 * p.b_transposed + 4 * p.add);
  if (kinds.load(std::memory_order_relaxed) & kind) [[likely]]
    return;
  OnednnCall::has_made_statics();
  kinds.fetch_or(kind, std::memory_order_relaxed);
}

}   // namespace

bool gemm(const MatrixProduct<float>& p) {
  static const bool is_on = !onednn_version().empty();
  static const Range faster = range();
  if (p.m * p.n < (faster.least + p.k - 1) / p.k || std::max({p.m, p.n, p.k}) > faster.widest || !is_on)
    return false;   // no overflow: below 2^31; k is not 0
  const OnednnCall call;
  if (!call) return false;
  const OneOpenmpThread guard;
  const dnnl_status_t status = dnnl_sgemm(p.a_transposed ? 'T' : 'N', p.b_transposed ? 'T' : 'N', p.m, p.n,
                                          p.k, 1, p.a, p.lda, p.b, p.ldb, p.add ? 1.0f : 0.0f, p.y, p.ldy);
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  if (status != dnnl_success) throw InternalError("matrix product: oneDNN failed");
  note_kernels(p);
  return true;
}

}   // namespace tapedeck::kernels::onednn
