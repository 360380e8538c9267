// Functions of matrices. In: batches of square matrices. Out: their exponentials and roots.
#include "kernels/linalg/matrix_functions.h"

#include "core/format.h"
#include "ops/axes.h"
#include "ops/linalg/matrices.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Spec infer_sylvester(const Call& c) {
  require_two(c, Take::complexes);
  require_square(c, 0, Take::complexes);
  require_square(c, 1, Take::complexes);
  if (extent(c.x[0], 1) != extent(c.x[1], 1)) c.throw_shape_error("x and b differ in extent");
  return joined_second(c);
}

// The derivative of the exponential at x in direction e is the upper right block of exp((x, e), (0, x)):
// Higham 2008, "Functions of matrices", theorem 3.6. It is linear in e, which is scaled to size 1 so that
// only x determines the scaling of the exponential.
Tensor exponential_derivative(const Tensor& x, const Tensor& e) {
  const std::int64_t n = extent(x, 1);
  if (n == 0) return e;
  const Tensor size = stop_gradient(max(abs(e), {-2, -1}, {.keepdims = true}));
  const Tensor scale = astype(where(size > 0, size, 1.0), e.dtype());
  const Tensor direction = e / scale, zero = zeros_like(direction),
               same = x.shape() == e.shape() ? x : broadcast_to(x, e.shape());
  const Tensor blocks = concat({concat({same, direction}, -1), concat({zero, same}, -1)}, -2);
  return split(split(matrix_exponential(blocks), {n, n}, -2)[0], {n, n}, -1)[1] * scale;
}

Tensor sylvester(const Tensor& x, const Tensor& b);

constexpr Op kMatrixExponential = {
    .name = "matrix_exponential",
    .doc = "The matrix exponential Σₖ xᵏ / k!.",
    .tensorflow = "MatrixExponential",
    .args = {"x"},
    .infer = infer_square<Take::complexes>,
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::matrix_exponential(c.x[0], y[0]); },
    .rule = Rule::custom(
        {.x = 1},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = exponential_derivative(adjoint(c.x[0]), std::move(dy[0]).dense());
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = exponential_derivative(c.x[0], dx[0]); }),
};

constexpr Op kMatrixSquareRoot = {
    .name = "matrix_square_root",
    .doc = "The principal square root of matrices: y y = x.",
    .tensorflow = "MatrixSquareRoot",
    .args = {"x"},
    .infer = infer_square<Take::complexes>,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          if (const kernels::Failure f = kernels::matrix_square_root(c.x[0], y[0]))
            throw_error<ArgumentError>(
                "matrix_square_root: matrix {} has an eigenvalue that is 0 or negative, so it has no "
                "principal root: x is {}",
                f.matrix, c.x[0].spec());
        },
    // Derived from y dy + dy y = dx.
    .rule = Rule::custom(
        {.y = true},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = sylvester(adjoint(c.y[0]), std::move(dy[0]).dense());
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = sylvester(c.y[0], dx[0]); }),
};

constexpr Op kSylvester = {
    .name = "sylvester",
    .doc = "The y with x y + y x = b. Used by the gradient of matrix_square_root.",
    .args = {"x", "b"},
    .infer = infer_sylvester,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          if (const kernels::Failure f = kernels::sylvester(c.x[0], c.x[1], y[0]))
            throw_error<ArgumentError>("sylvester: two eigenvalues of matrix {} add up to 0: x is {}",
                                       f.matrix, c.x[0].spec());
        },
    .rule = Rule::custom(
        {.x = 1, .y = true},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          const Tensor &y = c.y[0], db = sylvester(adjoint(c.x[0]), std::move(dy[0]).dense());
          if (c.needs_gradient(0))
            dx[0] = sum_repeated(
                c, -(matmul(db, y, {.transpose_b = true}) + matmul(y, db, {.transpose_a = true})), 0);
          if (c.needs_gradient(1)) dx[1] = sum_repeated(c, db, 1);
        }),
};

constexpr const Op* matrix_functions_table[] = {&kMatrixExponential, &kMatrixSquareRoot, &kSylvester};

Tensor sylvester(const Tensor& x, const Tensor& b) { return kSylvester(Operand(x), Operand(b)); }

}   // namespace

Tensor matrix_exponential(const Tensor& x) { return kMatrixExponential(Operand(x)); }
Tensor matrix_square_root(const Tensor& x) { return kMatrixSquareRoot(Operand(x)); }

std::span<const Op* const> matrix_functions_ops() { return matrix_functions_table; }

}   // namespace tapedeck
