// Band matrices given by their diagonals. In: diagonals and batches of matrices. Out: products and solutions.
#include "kernels/linalg/banded.h"

#include "core/format.h"
#include "ops/axes.h"
#include "ops/linalg/matrices.h"
#include "ops/promoted_operands.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Spec infer_bands(const Call& c) {
  require_two(c, Take::complexes);
  require_matrices(c, 0, Take::complexes);
  require_matrices(c, 1, Take::complexes);
  if (extent(c.x[0], 2) == 0) c.throw_shape_error("takes one diagonal or more");
  if (extent(c.x[0], 1) != extent(c.x[1], 2))
    c.throw_shape_error("the diagonals and the matrix differ in length");
  return joined_second(c);
}
Spec infer_tridiagonal(const Call& c) {
  const Spec y = infer_bands(c);
  if (extent(c.x[0], 2) != 3) c.throw_shape_error("takes three diagonals");
  return y;
}

// Rows [begin, begin + n) of matrices, or elements of vectors.
Tensor part(const Tensor& x, int axis, std::int64_t begin, std::int64_t n) {
  Shape from, size;
  for (int d = 0; d < x.ndim(); ++d)
    from.push_back(d == x.ndim() + axis ? begin : 0), size.push_back(d == x.ndim() + axis ? n : x.shape()[d]);
  return slice(x, from, size);
}
Tensor with_zeros(const Tensor& x, std::int64_t before, std::int64_t after) {
  Shape front, back;
  for (int d = 0; d < x.ndim(); ++d)
    front.push_back(d == x.ndim() - 1 ? before : 0), back.push_back(d == x.ndim() - 1 ? after : 0);
  return pad(x, front, back);
}

// The diagonal of p qᵀ that is `ahead` places above the main diagonal: Σ p[j] q[j + ahead] at j, and 0 if q
// has no row j + ahead.
Tensor diagonal_of_product(const Tensor& p, const Tensor& q, std::int64_t ahead) {
  const std::int64_t n = extent(p, 2), before = std::min(std::max<std::int64_t>(-ahead, 0), n),
                     after = std::min(std::max<std::int64_t>(ahead, 0), n);
  const std::int64_t left = std::max<std::int64_t>(n - before - after, 0);
  return with_zeros(sum(part(p, -2, before, left) * part(q, -2, after, left), -1), before, after);
}

// The diagonals of aᵀ, from the diagonals x of a tridiagonal matrix a.
Tensor transposed_diagonals(const Tensor& x) {
  const std::int64_t n = extent(x, 1);
  if (n == 0) return x;
  const std::vector<Tensor> d = unstack(x, x.ndim() - 2);
  return stack({with_zeros(part(d[2], -1, 1, n - 1), 0, 1), d[1], with_zeros(part(d[0], -1, 0, n - 1), 1, 0)},
               -2);
}
// The three diagonals of p qᵀ.
Tensor diagonals_of_product(const Tensor& p, const Tensor& q) {
  return stack({diagonal_of_product(p, q, 1), diagonal_of_product(p, q, 0), diagonal_of_product(p, q, -1)},
               -2);
}

void banded_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  const TriangularSolveOptions t = c.attrs<TriangularSolveOptions>();
  const Tensor db = banded_triangular_solve(c.x[0], std::move(dy[0]).dense(), {t.lower, !t.transpose_a});
  if (c.needs_gradient(0)) {
    const Tensor &p = t.transpose_a ? c.y[0] : db, &q = t.transpose_a ? db : c.y[0];
    const std::int64_t k = extent(c.x[0], 2);
    std::vector<Tensor> bands;
    for (std::int64_t i = 0; i < k; ++i)
      bands.push_back(diagonal_of_product(p, q, t.lower ? -i : k - 1 - i));
    dx[0] = sum_repeated(c, -stack(bands, -2), 0);
  }
  if (c.needs_gradient(1)) dx[1] = sum_repeated(c, db, 1);
}

constexpr Op kBandedTriangularSolve = {
    .name = "banded_triangular_solve",
    .doc =
        "The y with a y = b, or aᵀ y = b if transposed, for a triangular band matrix a given by its "
        "diagonals.",
    .tensorflow = "BandedTriangularSolve",
    .args = {"bands", "b"},
    .infer = infer_bands,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          const auto [lower, is_transposed] = c.attrs<TriangularSolveOptions>();
          if (const kernels::Failure f =
                  kernels::banded_triangular_solve(c.x[0], c.x[1], lower, is_transposed, y[0]))
            throw_singular(c, f);
        },
    .rule = Rule::custom({.x = 1, .y = true}, banded_vjp),
};

constexpr Op kTridiagonalMatmul = {
    .name = "tridiagonal_matmul",
    .doc = "The product a x for the tridiagonal matrix with a[j, j + 1 - i] = diagonals[i, j].",
    .tensorflow = "TridiagonalMatMul",
    .args = {"diagonals", "x"},
    .infer = infer_tridiagonal,
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::tridiagonal_matmul(c.x[0], c.x[1], y[0]); },
    .rule = Rule::bilinear(
        [](const Call& c, const Tensor& dy) { return sum_repeated(c, diagonals_of_product(dy, c.x[1]), 0); },
        [](const Call& c, const Tensor& dy) {
          return sum_repeated(c, tridiagonal_matmul(transposed_diagonals(c.x[0]), dy), 1);
        }),
};

constexpr Op kTridiagonalSolve = {
    .name = "tridiagonal_solve",
    .doc = "The y with a y = b for the tridiagonal matrix with a[j, j + 1 - i] = diagonals[i, j].",
    .tensorflow = "TridiagonalSolve",
    .args = {"diagonals", "b"},
    .infer = infer_tridiagonal,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          if (const kernels::Failure f = kernels::tridiagonal_solve(c.x[0], c.x[1], y[0]))
            throw_singular(c, f);
        },
    .rule = Rule::custom({.x = 1, .y = true},
                         [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                           const Tensor db =
                               tridiagonal_solve(transposed_diagonals(c.x[0]), std::move(dy[0]).dense());
                           if (c.needs_gradient(0))
                             dx[0] = sum_repeated(c, -diagonals_of_product(db, c.y[0]), 0);
                           if (c.needs_gradient(1)) dx[1] = sum_repeated(c, db, 1);
                         }),
};

constexpr const Op* banded_table[] = {&kBandedTriangularSolve, &kTridiagonalMatmul, &kTridiagonalSolve};

// Promotes floating-point and complex operands only: operator()(Operand, Operand) would convert integers,
// too.
Tensor run_promoted(const Op& op, const Tensor& a, const Tensor& b) {
  const auto [p, q] = promoted(a, b);
  const Tensor* x[] = {&p, &q};
  return op({x, 2});
}

}   // namespace

Tensor banded_triangular_solve(const Tensor& bands, const Tensor& b, TriangularSolveOptions options) {
  const auto [p, q] = promoted(bands, b);
  return kBandedTriangularSolve(p, q, options);
}
Tensor tridiagonal_matmul(const Tensor& diagonals, const Tensor& x) {
  return run_promoted(kTridiagonalMatmul, diagonals, x);
}
Tensor tridiagonal_solve(const Tensor& diagonals, const Tensor& b) {
  return run_promoted(kTridiagonalSolve, diagonals, b);
}

std::span<const Op* const> banded_ops() { return banded_table; }

}   // namespace tapedeck
