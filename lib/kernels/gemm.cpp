// Products by BLAS. Small ones too: a kernel of our own was not faster than OpenBLAS's for sizes from 8 to 64.
#include "kernels/gemm.h"

#include <cblas.h>

extern "C" {
int openblas_get_num_threads(void);
void openblas_set_num_threads(int);
}

namespace tapedeck::kernels {
namespace {

CBLAS_TRANSPOSE flag(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }
blasint narrow(std::int64_t n) { return static_cast<blasint>(n); }

}  // namespace

void gemm(const Product<float>& p) {
  cblas_sgemm(CblasRowMajor, flag(p.a_transposed), flag(p.b_transposed), narrow(p.m), narrow(p.n), narrow(p.k), 1, p.a, narrow(p.lda), p.b, narrow(p.ldb),
              p.add ? 1.0f : 0.0f, p.y, narrow(p.ldy));
}
void gemm(const Product<double>& p) {
  cblas_dgemm(CblasRowMajor, flag(p.a_transposed), flag(p.b_transposed), narrow(p.m), narrow(p.n), narrow(p.k), 1, p.a, narrow(p.lda), p.b, narrow(p.ldb),
              p.add ? 1.0 : 0.0, p.y, narrow(p.ldy));
}

OneBlasThread::OneBlasThread() : before_(openblas_get_num_threads()) {
  if (before_ != 1) openblas_set_num_threads(1);
}
OneBlasThread::~OneBlasThread() {
  if (before_ != 1) openblas_set_num_threads(before_);
}

}  // namespace tapedeck::kernels
