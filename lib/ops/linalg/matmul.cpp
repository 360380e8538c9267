// Matrix products. In: tensors whose last two axes are matrices, each optionally read as transposed. Out:
// their products.
#include "kernels/linalg/matmul.h"
#include "ops/axes.h"
#include "ops/linalg/matrices.h"
#include "ops/promoted_operands.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Spec infer_matmul(const Call& c) {
  const auto [a_transposed, b_transposed] = c.attrs<MatmulOptions>();
  const Tensor &a = c.x[0], &b = c.x[1];
  require_two(c, Take::complexes);
  if (a.ndim() < 2 || b.ndim() < 2)
    c.throw_shape_error("takes tensors of rank 2 or more; tensordot(a, b, 1) takes vectors, too");
  const std::int64_t m = extent(a, a_transposed ? 1 : 2), n = extent(b, b_transposed ? 2 : 1),
                     k = extent(a, a_transposed ? 2 : 1);
  if (k != extent(b, b_transposed ? 1 : 2)) c.throw_shape_error("inner dimensions differ");
  require_countable(c, std::max({m, n, k}));
  Shape y = joined_batches(c);
  y.push_back(m);
  y.push_back(n);
  return {a.dtype(), y};
}

// The rows of all matrices in x's last `ndim` axes as one tall matrix. Precondition: x is not empty, since
// the number of rows of an empty x may overflow.
Tensor tall(const Tensor& x, int ndim) {
  std::int64_t rows = 1;
  for (int back = 2; back <= ndim; ++back)
    rows *= extent(x, back);
  return reshape(x, behind_extra(x, ndim, {rows, extent(x, 1)}));
}

Tensor gradient_of_a(const Call& c, const Tensor& dy) {
  const auto [a, b] = c.attrs<MatmulOptions>();
  return sum_repeated(c, a ? matmul(c.x[1], dy, {b, true}) : matmul(dy, c.x[1], {false, !b}), 0);
}

Tensor gradient_of_b(const Call& c, const Tensor& dy) {
  const auto [a, b] = c.attrs<MatmulOptions>();
  const int ndim = c.y[0].ndim();
  // A batch of matrices times a single matrix: one product includes the sum over the batch.
  if (c.x[1].ndim() == 2 && c.x[0].ndim() == ndim && ndim > 2 && !a && c.x[0].size() > 0) {
    const Tensor rows = tall(c.x[0], ndim), dy_rows = tall(dy, ndim);
    return b ? matmul(dy_rows, rows, {true, false}) : matmul(rows, dy_rows, {true, false});
  }
  return sum_repeated(c, b ? matmul(dy, c.x[0], {true, a}) : matmul(c.x[0], dy, {!a, false}), 1);
}

constexpr Op kMatmul = {
    .name = "matmul",
    .doc = "Matrix product over the last two axes: y[i, j] = Σₖ a[i, k] b[k, j].",
    .tensorflow = "MatMul BatchMatMul BatchMatMulV2",
    .args = {"a", "b"},
    .infer = infer_matmul,
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  const auto [a, b] = c.attrs<MatmulOptions>();
                  kernels::matmul(c.x[0], c.x[1], {a, b}, y[0]);
                },
                Outputs::fresh, KernelDtypes::native_and_halves},
    .rule = Rule::bilinear([](const Call& c, const Tensor& dy) { return gradient_of_a(c, dy); },
                           [](const Call& c, const Tensor& dy) { return gradient_of_b(c, dy); }),
    .meaning = Meaning::matmul,
};

constexpr const Op* matmul_table[] = {&kMatmul};

}   // namespace

Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options) {
  if (a.dtype() == b.dtype()) [[likely]]
    return kMatmul(a, b, options);
  const auto [p, q] = promoted(a, b);
  return kMatmul(p, q, options);
}

std::span<const Op* const> matmul_ops() { return matmul_table; }

}   // namespace tapedeck
