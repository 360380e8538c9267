// Linear equations, inverses and determinants. In: batches of matrices. Out: factors, solutions and numbers.
// Rules follow Giles 2008, "Collected matrix derivative results", section 2, unless another source is given.

#include "kernels/linalg/solve.h"
#include "core/format.h"
#include "ops/axes.h"
#include "ops/linalg/cofactors.h"
#include "ops/linalg/matrices.h"
#include "ops/promoted_operands.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Spec infer_number(const Call& c) {
  require_square(c, 0, Take::complexes);
  return with_last(c.x[0], 2, {});
}
Spec infer_solve(const Call& c) {
  require_two(c, Take::complexes);
  require_square(c, 0, Take::complexes);
  if (c.x[1].ndim() == 1)
    c.throw_shape_error(fmt::format("takes {} of rank 2 or more; expand_dims({}, -1) makes a vector a column",
                                    c.op.args[1], c.op.args[1]));
  require_matrices(c, 1, Take::complexes);
  if (extent(c.x[0], 1) != extent(c.x[1], 2))
    c.throw_shape_error(fmt::format("{} and {} have different numbers of rows", c.op.args[0], c.op.args[1]));
  return joined_second(c);
}

Spec infer_cofactors(const Call& c) {
  require_two(c, Take::complexes);
  const Spec number = infer_number(c);
  if (c.x[1].shape() != number.shape) c.throw_shape_error("y is not the determinants of x");
  return c.x[0].spec();
}

// For a y = b: the gradient of a, from the gradient of b.
Tensor gradient_of_a(const Tensor& y, const Tensor& db, bool is_transposed) {
  return is_transposed ? -matmul(y, db, {.transpose_b = true}) : -matmul(db, y, {.transpose_b = true});
}

// The tangent of the right-hand side b, minus the term with da.
Tensor tangent_of_b(const Call& c, Refs dx, const Tensor& da, bool is_transposed) {
  if (!dx[0].defined()) return dx[1];
  const Tensor moved = matmul(da, c.y[0], {.transpose_a = is_transposed});
  return dx[1].defined() ? dx[1] - moved : -moved;
}

Tensor named_part(const Tensor& x, const TriangularSolveOptions& t) { return t.lower ? tril(x) : triu(x); }

Tensor cofactors(const Tensor& x, const Tensor& y);

constexpr Op kCholesky = {
    .name = "cholesky",
    .doc =
        "The lower triangular L with L Lᴴ = (x + xᴴ) / 2. Its gradient is symmetric, or Hermitian for "
        "complex matrices.",
    .tensorflow = "Cholesky",
    .args = {"x"},
    .infer = infer_square<Take::complexes>,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          if (const kernels::Failure f = kernels::cholesky(c.x[0], y[0]))
            throw_error<ArgumentError>(
                "cholesky: matrix {} is not positive definite: its leading minor of order {} is not "
                "positive: x is {}",
                f.matrix, f.at, c.x[0].spec());
        },
    // Murray 2016, "Differentiation of the Cholesky decomposition", equations 8 and 10, with conjugate
    // transposes.
    .rule = Rule::custom(
        {.y = true},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          const Tensor& l = c.y[0];
          const Tensor left =
              triangular_solve(l, lower_half(matmul(l, std::move(dy[0]).dense(), {.transpose_a = true})),
                               {.transpose_a = true});
          const Tensor both = triangular_solve(l, conjugate_transpose(left), {.transpose_a = true});
          dx[0] = 0.5 * (both + conjugate_transpose(both));
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          const Tensor& l = c.y[0];
          const Tensor left = triangular_solve(l, 0.5 * (dx[0] + conjugate_transpose(dx[0])));
          dy[0] = matmul(l, lower_half(triangular_solve(l, conjugate_transpose(left))));
        }),
};

constexpr Op kTriangularSolve = {
    .name = "triangular_solve",
    .doc = "The y with a y = b, or aᵀ y = b if transposed; only the lower or upper triangle of a is read.",
    .tensorflow = "MatrixTriangularSolve",
    .args = {"a", "b"},
    .infer = infer_solve,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          const auto [lower, is_transposed] = c.attrs<TriangularSolveOptions>();
          if (const kernels::Failure f =
                  kernels::triangular_solve(c.x[0], c.x[1], lower, is_transposed, y[0]))
            throw_singular(c, f);
        },
    .rule = Rule::custom(
        {.x = 1, .y = true},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          const TriangularSolveOptions t = c.attrs<TriangularSolveOptions>();
          const Tensor db = triangular_solve(c.x[0], std::move(dy[0]).dense(), {t.lower, !t.transpose_a});
          if (c.needs_gradient(0))
            dx[0] = sum_repeated(c, named_part(gradient_of_a(c.y[0], db, t.transpose_a), t), 0);
          if (c.needs_gradient(1)) dx[1] = sum_repeated(c, db, 1);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          const TriangularSolveOptions t = c.attrs<TriangularSolveOptions>();
          dy[0] = triangular_solve(
              c.x[0], tangent_of_b(c, dx, dx[0].defined() ? named_part(dx[0], t) : Tensor(), t.transpose_a),
              t);
        }),
};

constexpr Op kSolve = {
    .name = "solve",
    .doc = "The y with a y = b, or aᵀ y = b if transposed.",
    .tensorflow = "MatrixSolve",
    .args = {"a", "b"},
    .infer = infer_solve,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          if (const kernels::Failure f =
                  kernels::solve(c.x[0], c.x[1], c.attrs<SolveOptions>().transpose_a, y[0]))
            throw_singular(c, f);
        },
    .rule = Rule::custom(
        {.x = 1, .y = true},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          const bool is_transposed = c.attrs<SolveOptions>().transpose_a;
          const Tensor db = solve(c.x[0], std::move(dy[0]).dense(), {.transpose_a = !is_transposed});
          if (c.needs_gradient(0)) dx[0] = sum_repeated(c, gradient_of_a(c.y[0], db, is_transposed), 0);
          if (c.needs_gradient(1)) dx[1] = sum_repeated(c, db, 1);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          const bool is_transposed = c.attrs<SolveOptions>().transpose_a;
          dy[0] = solve(c.x[0], tangent_of_b(c, dx, dx[0], is_transposed), {.transpose_a = is_transposed});
        }),
};

constexpr Op kInv = {
    .name = "inv",
    .doc = "The inverse of matrices.",
    .tensorflow = "MatrixInverse",
    .args = {"x"},
    .infer = infer_square<Take::complexes>,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          if (const kernels::Failure f = kernels::inv(c.x[0], y[0])) throw_singular(c, f);
        },
    .rule = Rule::custom(
        {.y = true},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = -matmul(matmul(c.y[0], std::move(dy[0]).dense(), {.transpose_a = true}), c.y[0],
                          {.transpose_b = true});
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = -matmul(matmul(c.y[0], dx[0]), c.y[0]); }),
};

constexpr Op kDet = {
    .name = "det",
    .doc = "The determinant of matrices.",
    .tensorflow = "MatrixDeterminant",
    .args = {"x"},
    .infer = infer_number,
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::det(c.x[0], y[0]); },
    .rule = Rule::custom(
        {.x = 1, .y = true},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = as_matrix(std::move(dy[0]).dense()) * cofactors(c.x[0], c.y[0]);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          dy[0] = sum(cofactors(c.x[0], c.y[0]) * dx[0], {-2, -1});
        }),
};

constexpr Op kCofactors = {
    .name = "cofactors",
    .doc =
        "The cofactor matrices of x, whose determinants are y: y x⁻ᵀ, computed without a division if y has "
        "zeros. Used by the derivative of det.",
    .args = {"x", "y"},
    .infer = infer_cofactors,
    .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = cofactors_of(c.x[0], c.x[1]); },
                Outputs::by_kernel},
    // y is a function of x, so only x has a gradient.
    .rule = Rule::custom(
                {.x = 0b11},
                [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                  if (c.needs_gradient(0))
                    dx[0] = change_of_cofactors(c.x[0], c.x[1], std::move(dy[0]).dense());
                },
                [](const Call& c, Refs dx, std::span<Tensor> dy) {
                  if (dx[0].defined()) dy[0] = change_of_cofactors(c.x[0], c.x[1], dx[0]);
                })
                .stacking_jvp(),
};

constexpr Op kSlogdet = {
    .name = "slogdet",
    .doc =
        "The sign of the determinant, for complex matrices its phase factor det(x) / |det(x)|, and the "
        "logarithm of its magnitude.",
    .tensorflow = "LogMatrixDeterminant",
    .args = {"x"},
    .infer =
        [](const Call& c) {
          const Spec sign = infer_number(c);
          return std::vector<Spec>{sign, {real_of(sign.dtype), sign.shape}};
        },
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::slogdet(c.x[0], y[0], y[1]); },
    // With t the trace of x⁻¹ dx, the logarithm changes by the real part of t, and the phase of the sign by
    // the imaginary part.
    .rule = Rule::custom(
                {.x = 1, .y = true},
                [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                  Tensor weight;
                  if (dy[1].defined()) weight = astype(std::move(dy[1]).dense(), c.x[0].dtype());
                  if (dy[0].defined() && is_complex(c.x[0].dtype())) {
                    const Tensor turn = imag(std::move(dy[0]).dense() * c.y[0]),
                                 of_turn = complex(zeros_like(turn), turn);
                    weight = weight.defined() ? weight + of_turn : of_turn;
                  }
                  if (weight.defined()) dx[0] = as_matrix(weight) * adjoint(inv(c.x[0]));
                },
                [](const Call& c, Refs dx, std::span<Tensor> dy) {
                  const Tensor t = trace(solve(c.x[0], dx[0])), along = real(t);
                  if (is_complex(t.dtype())) dy[0] = c.y[0] * (t - astype(along, t.dtype()));
                  dy[1] = along;
                })
                .accepting_none(),
};

constexpr Op kLu = {
    .name = "lu",
    .doc =
        "The factorization gather(x, permutation) = L U with partial pivoting. packed has U on and above "
        "the diagonal, and below it L, whose diagonal is ones.",
    .tensorflow = "Lu",
    .args = {"x"},
    .infer =
        [](const Call& c) {
          require_matrices(c, 0, Take::complexes);
          const Spec rows = with_last(c.x[0], 1, {});
          return std::vector<Spec>{c.x[0].spec(), {DType::i64, rows.shape}};
        },
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::lu(c.x[0], y[0], y[1]); },
    .rule = Rule::none(),
};

constexpr const Op* solve_table[] = {&kCholesky, &kTriangularSolve, &kSolve,   &kInv,
                                     &kDet,      &kCofactors,       &kSlogdet, &kLu};

Tensor cofactors(const Tensor& x, const Tensor& y) { return kCofactors(Operand(x), Operand(y)); }

}   // namespace

Tensor cholesky(const Tensor& x) { return kCholesky(Operand(x)); }
Tensor cholesky_solve(const Tensor& lower, const Tensor& columns) {
  const auto [factor, b] = promoted(lower, columns);
  constexpr Op op = {.name = "cholesky_solve",   // for messages
                     .doc = "",
                     .args = {"factor", "b"},
                     .infer = infer_solve,
                     .forward = {nullptr},
                     .rule = Rule::none()};
  const Tensor* const inputs[] = {&factor, &b};
  const Call call{.op = op, .x = {inputs, 2}};
  for (int i = 0; i < call.x.size(); ++i)
    if (!call.x[i].defined()) throw_error<ArgumentError>("{}: {} is undefined", op.name, op.args[i]);
  infer_solve(call);
  return triangular_solve(conj(factor), triangular_solve(factor, b), {.transpose_a = true});
}
Tensor triangular_solve(const Tensor& a, const Tensor& b, TriangularSolveOptions options) {
  const auto [p, q] = promoted(a, b);
  return kTriangularSolve(p, q, options);
}
Tensor solve(const Tensor& a, const Tensor& b, SolveOptions options) {
  const auto [p, q] = promoted(a, b);
  return kSolve(p, q, options);
}
Tensor inv(const Tensor& x) { return kInv(Operand(x)); }
Tensor det(const Tensor& x) { return kDet(Operand(x)); }
SignAndLog slogdet(const Tensor& x) {
  std::vector<Tensor> y = kSlogdet.run({&x, 1});
  return {std::move(y[0]), std::move(y[1])};
}
Lu lu(const Tensor& x) {
  std::vector<Tensor> y = kLu.run({&x, 1});
  return {std::move(y[0]), std::move(y[1])};
}

std::span<const Op* const> solve_ops() { return solve_table; }

}   // namespace tapedeck
