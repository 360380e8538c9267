// Orthogonal factorizations, and functions based on them. In: batches of matrices. Out: factors, values,
// vectors. Rules also hold for complex matrices, with conjugate transposes. Complex derivatives are not
// complex-linear here: rules receive conjugates (op/pull_back.h), and conjugate them again if they need the
// values themselves.
#include "tapedeck/ops/decompositions.h"

#include "core/format.h"
#include "kernels/linalg/factor.h"
#include "ops/axes.h"
#include "ops/linalg/decompositions.h"
#include "ops/linalg/matrices.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

// The factors of m × n matrices: q or u is m × first, r or vh is second × n.
struct Extents {
  std::int64_t m, n, first, second;
};
Extents extents_of(const Call& c) {
  require_matrices(c, 0, Take::complexes);
  const std::int64_t m = extent(c.x[0], 2), n = extent(c.x[0], 1), k = std::min(m, n);
  const bool full = c.attrs<Full>().full;
  return {m, n, full ? m : k, full ? n : k};
}

Spec real_spec(const Spec& x) { return {real_of(x.dtype), x.shape}; }

std::vector<Spec> infer_qr(const Call& c) {
  const Extents e = extents_of(c);
  return {with_last(c.x[0], 2, {e.m, e.first}), with_last(c.x[0], 2, {e.first, e.n})};
}
std::vector<Spec> infer_eigh(const Call& c) {
  require_square(c, 0, Take::complexes);
  require_iterable(c);
  return {real_spec(with_last(c.x[0], 1, {})), c.x[0].spec()};
}
std::vector<Spec> infer_svd(const Call& c) {
  const Extents e = extents_of(c);
  require_iterable(c);
  return {with_last(c.x[0], 2, {e.m, e.first}), real_spec(with_last(c.x[0], 2, {std::min(e.m, e.n)})),
          with_last(c.x[0], 2, {e.second, e.n})};
}
Spec infer_pinv(const Call& c) {
  require_matrices(c, 0, Take::complexes);
  require_iterable(c);
  return with_last(c.x[0], 2, {extent(c.x[0], 1), extent(c.x[0], 2)});
}

// Walter & Lehmann 2010, "Algorithmic differentiation of linear algebra functions", section on QR: for m ≥ n
// and n columns of q. The diagonal of r is real, so only the real part of the diagonal of `half` counts. q
// and r are passed conjugated.
Tensor tall_qr_gradient(const Tensor& q, const Tensor& r, const Tensor& dq, const Tensor& dr) {
  const Tensor half =
      lower_half(conj(matmul(r, dr, {.transpose_b = true}) - matmul(dq, q, {.transpose_a = true})));
  return adjoint(
      triangular_solve(r, adjoint(dq + matmul(conj(q), half + conjugate_transpose(half))), {.lower = false}));
}

void qr_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  const Tensor &x = c.x[0], &q = c.y[0], &r = c.y[1];
  const std::int64_t m = extent(x, 2), n = extent(x, 1);
  if (extent(q, 1) > n)
    throw_error<GradientError>(
        "qr: the gradient of full factors is not defined for more rows than columns: x is {}; use full = "
        "false",
        x.spec());
  const Tensor dq = std::move(dy[0]).dense(), dr = std::move(dy[1]).dense();
  if (m >= n) {
    dx[0] = tall_qr_gradient(q, r, dq, dr);
    return;
  }
  // x = (a b) and r = (u v): a = q u, b = q v.
  const Tensor b = split(x, {m, n - m}, -1)[1], u = split(r, {m, n - m}, -1)[0];
  const std::vector<Tensor> parts = split(dr, {m, n - m}, -1);
  dx[0] = concat({tall_qr_gradient(q, u, dq + conj(matmul(b, parts[1], {.transpose_b = true})), parts[0]),
                  matmul(conj(q), parts[1])},
                 -1);
}

Tensor reciprocal_or_zero(const Tensor& x) {
  const Tensor zero = equal(x, 0.0);
  return where(zero, 0.0, reciprocal(where(zero, 1.0, x)));
}
Tensor times_i(const Tensor& x) { return complex(zeros_like(x), x); }

// The phase of each complex vector in u is fixed so that its largest component is real. `turns` has the
// derivatives of the loss with respect to the phases of the vectors. Fixing the phases cancels such changes,
// which adds this gradient, of the largest components only.
Tensor gradient_of_turns(const Tensor& u, const Tensor& turns) {
  const Tensor size = abs(u);
  return times_i(adjoint(one_hot(argmax(size, -2), extent(u, 2), size.dtype())) *
                 as_row(-turns / max(size, {-2})));
}
// The derivatives of the loss with respect to the phases of vectors. u has the conjugates of these vectors.
Tensor turns_of(const Tensor& u, const Tensor& du, int axis) { return imag(sum(u * du, {axis})); }

// Giles 2008, section 3.1. Only the lower triangle of x is read, so it also gets the gradient of the upper
// triangle. v is passed conjugated.
void eigh_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  const Tensor &values = c.y[0], &v = c.y[1];
  const DType t = v.dtype();
  Tensor middle;
  if (dy[1].defined()) {
    Tensor dv = std::move(dy[1]).dense();
    if (is_complex(t) && v.size() > 0) dv = dv + gradient_of_turns(v, turns_of(v, dv, -2));
    middle = astype(reciprocal_differences(values), t) * matmul(v, dv, {.transpose_a = true});
  }
  if (dy[0].defined()) {
    const Tensor of_values = astype(matrix_diag(std::move(dy[0]).dense()), t);
    middle = middle.defined() ? middle + of_values : of_values;
  }
  const Tensor g = matmul(matmul(conj(v), middle), v, {.transpose_b = true});
  dx[0] = lower_half(g + conjugate_transpose(g));
}

// Townsend 2016, "Differentiating the singular value decomposition", section 3; for complex matrices Wan &
// Zhang 2019, "Automatic differentiation for complex valued SVD", whose phase term is on the diagonal here. u
// and vh are passed conjugated.
void svd_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  const std::int64_t m = extent(c.x[0], 2), n = extent(c.x[0], 1), k = std::min(m, n);
  if ((extent(c.y[0], 1) > n && dy[0].defined()) || (extent(c.y[2], 2) > m && dy[2].defined()))
    throw_error<GradientError>(
        "svd: the gradient of full factors is defined for square matrices only: x is {}; use full = false",
        c.x[0].spec());
  const Tensor u = extent(c.y[0], 1) > k ? split(c.y[0], {k, m - k}, -1)[0] : c.y[0],
               vh = extent(c.y[2], 2) > k ? split(c.y[2], {k, n - k}, -2)[0] : c.y[2];
  const DType t = u.dtype();
  const bool of_vectors = dy[0].defined() || dy[2].defined();
  const Tensor &values = c.y[1], s = astype(values, t), true_u = conj(u), true_vh = conj(vh);
  const Tensor differences = of_vectors ? astype(reciprocal_differences(square(values)), t) : Tensor();
  const auto twice_odd_part = [&](const Tensor& p) { return differences * (p - conjugate_transpose(p)); };
  Tensor du = dy[0].defined() ? std::move(dy[0]).dense() : Tensor();
  const Tensor dvh = dy[2].defined() ? std::move(dy[2]).dense() : Tensor();
  if (is_complex(t) && of_vectors && k > 0) {   // u and vh share their phases
    Tensor turns = du.defined() ? turns_of(u, du, -2) : Tensor();
    if (dvh.defined()) turns = turns.defined() ? turns - turns_of(vh, dvh, -1) : -turns_of(vh, dvh, -1);
    const Tensor more = gradient_of_turns(u, turns);
    du = du.defined() ? du + more : more;
  }
  std::vector<Tensor> middle, outside;
  if (dy[1].defined()) middle.push_back(astype(matrix_diag(std::move(dy[1]).dense()), t));
  if (du.defined()) {
    const Tensor p = matmul(u, du, {.transpose_a = true});
    middle.push_back(twice_odd_part(p) * as_row(s));
    if (is_complex(t)) middle.push_back(matrix_diag(times_i(imag(diagonal(p)) * reciprocal_or_zero(values))));
    if (m > n) outside.push_back(matmul((du - matmul(true_u, p)) * as_row(reciprocal_or_zero(s)), true_vh));
  }
  if (dvh.defined()) {
    const Tensor p = matmul(dvh, vh, {.transpose_b = true});
    middle.push_back(expand_dims(s, -1) * twice_odd_part(conjugate_transpose(p)));
    if (n > m) outside.push_back(matmul(true_u * as_row(reciprocal_or_zero(s)), dvh - matmul(p, true_vh)));
  }
  outside.push_back(matmul(true_u, matmul(add_n(std::move(middle)), true_vh)));
  dx[0] = add_n(std::move(outside));
}

// Whether every matrix in x has full rank, given its pseudoinverse y: the trace of y x counts the singular
// values that are not treated as zero.
bool has_full_rank(const Tensor& x, const Tensor& y) {
  const StopRecording stop;
  const Tensor rank = real(sum(y * adjoint(x), {-2, -1}));
  return rank.size() == 0 ||
         min(rank).item() > static_cast<double>(std::min(extent(x, 1), extent(x, 2))) - 0.5;
}

// The largest magnitude in each matrix, but at least 1e-30, as a constant.
Tensor scale_of(const Tensor& x) {
  const StopRecording stop;
  return astype(maximum(max(abs(x), {-2, -1}, {.keepdims = true}), 1e-30), x.dtype());
}

// The sum of aᵏ t bᵏ over k ≥ 0, by doubling the number of terms; at least four terms, for derivatives at
// b = 0. a is divided by its scale and b multiplied by it, so that their powers stay in range.
Tensor sum_of_powers(Tensor a, Tensor t, Tensor b) {
  constexpr int kMostDoublings = 60;
  for (int i = 0; i < kMostDoublings; ++i) {
    if (i > 0) a = matmul(a, a), b = matmul(b, b);
    const Tensor scale = scale_of(a);
    a = a / scale, b = b * scale;
    t = t + matmul(matmul(a, t), b);
    if (const Tensor rest = scale_of(b); i > 0 && (rest.size() == 0 || !(max(real(rest)).item() > 1e-20)))
      break;
  }
  return t;
}

// r = x - x y x is the part of x with singular values that are treated as zero. Golub & Pereyra 1973, "The
// differentiation of pseudo-inverses", equation 4.12, has the terms without r. The others follow from the
// derivatives of singular vectors: rotations between the vectors of a kept value s and of a value t in r have
// factors 1 / (s² - t²) = (1 + t²/s² + t⁴/s⁴ + …) / s².
Tensor rank_deficient_pinv_gradient(const Tensor& x, const Tensor& y, const Tensor& g) {
  const Tensor yh = conjugate_transpose(y), r = x - matmul(x, matmul(y, x)), rh = conjugate_transpose(r);
  const Tensor rows = matmul(yh, y), columns = matmul(y, yh);
  const Tensor left = sum_of_powers(columns, g, matmul(r, rh)), right = sum_of_powers(matmul(rh, r), g, rows);
  const Tensor turned = matmul(conjugate_transpose(left), columns),
               back = matmul(rows, conjugate_transpose(right));
  return add_n({turned - matmul(x, matmul(y, turned)), matmul(yh, matmul(columns, matmul(left, r))),
                back - matmul(matmul(back, y), x), matmul(matmul(matmul(r, right), rows), yh),
                -matmul(yh, matmul(g, yh))});
}

// Products are ordered so that intermediate matrices are as small as possible. yc and gc are the conjugates
// of y and g.
void pinv_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  const Tensor &yc = c.y[0], x = conj(c.x[0]), y = conj(yc);
  const Tensor g = std::move(dy[0]).dense(), gc = conj(g);
  if (!has_full_rank(x, y)) {
    dx[0] = rank_deficient_pinv_gradient(x, y, g);
  } else if (extent(x, 2) < extent(x, 1)) {
    const Tensor gy = matmul(gc, y, {.transpose_a = true}),
                 right = matmul(matmul(yc, y, {.transpose_a = true}), adjoint(gc));
    dx[0] = right - matmul(matmul(right, y), x) -
            matmul(conj(gy), yc, {.transpose_a = true, .transpose_b = true});
  } else {
    const Tensor yg = matmul(y, gc, {.transpose_b = true}),
                 left = matmul(adjoint(gc), matmul(y, yc, {.transpose_b = true}));
    dx[0] =
        left - matmul(x, matmul(y, left)) - matmul(yc, conj(yg), {.transpose_a = true, .transpose_b = true});
  }
}

// The Cholesky factor of aᴴa + l2, or of a aᴴ + l2 if that is smaller.
bool is_tall(const Tensor& a) { return extent(a, 2) >= extent(a, 1); }
Tensor factor_of_products(const Tensor& a, double l2) {
  const std::int64_t n = std::min(extent(a, 1), extent(a, 2));
  const Tensor products =
      is_tall(a) ? matmul(conj(a), a, {.transpose_a = true}) : matmul(a, conj(a), {.transpose_b = true});
  try {
    return cholesky(l2 > 0 ? products + eye(n, n, a.dtype()) * l2 : products);
  } catch (const ArgumentError&) {
    throw_error<ArgumentError>(
        "lstsq: a matrix does not have full rank, or its condition number is too large for the normal "
        "equations: a is {}; "
        "use fast = false or a positive l2",
        a.spec());
  }
}

Spec infer_lstsq(const Call& c) {
  const Tensor &a = c.x[0], &b = c.x[1];
  if (a.ndim() < 2 || b.ndim() < 2) c.throw_shape_error("takes tensors of rank 2 or more");
  if (a.dtype() != b.dtype() || !is_trainable(a.dtype()))
    c.throw_dtype_error("takes f32, f64, f16, bf16, c64 or c128, the same for a and b");
  if (extent(a, 2) != extent(b, 2)) c.throw_shape_error("a and b have different numbers of rows");
  Shape shape = joined_batches(c);
  shape.push_back(extent(a, 1));
  shape.push_back(extent(b, 1));
  return {a.dtype(), shape};
}

void run_lstsq(const Call& c, std::span<Tensor> y) {
  const Tensor &a = c.x[0], &b = c.x[1], ac = conj(a), factor = factor_of_products(a, c.attrs<Ridge>().l2);
  if (is_tall(a))
    y[0] = cholesky_solve(factor, matmul(ac, b, {.transpose_a = true}));
  else
    y[0] = matmul(ac, cholesky_solve(factor, b), {.transpose_a = true});
}

// The vjp of (aᴴa + l2) y = aᴴb or, for a wide a, of y = aᴴw with (a aᴴ + l2) w = b. ac and yc are the
// conjugates of a and y.
void lstsq_vjp(const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  const Tensor &ac = c.x[0], &yc = c.y[0], a = conj(ac), b = conj(c.x[1]), dy = std::move(dys[0]).dense(),
               factor = factor_of_products(a, c.attrs<Ridge>().l2);
  const Tensor z = is_tall(a) ? cholesky_solve(factor, dy) : Tensor();
  const Tensor db = is_tall(a) ? matmul(a, z) : cholesky_solve(factor, matmul(a, dy));
  if (c.needs_gradient(0)) {
    const Tensor da = is_tall(a)
                          ? matmul(b - matmul(a, conj(yc)), conj(z), {.transpose_b = true})
                          : matmul(cholesky_solve(factor, b),
                                   conj(dy - matmul(ac, db, {.transpose_a = true})), {.transpose_b = true});
    dx[0] = sum_repeated(c, da - matmul(db, yc, {.transpose_b = true}), 0);
  }
  if (c.needs_gradient(1)) dx[1] = sum_repeated(c, db, 1);
}

void lstsq_jvp(const Call& c, Refs dx, std::span<Tensor> dy) {
  const Tensor &a = c.x[0], &b = c.x[1], &y = c.y[0], &da = dx[0], ac = conj(a),
               factor = factor_of_products(a, c.attrs<Ridge>().l2);
  Tensor right = dx[1], rest;   // right: the tangent of b - a y at fixed y; rest: daᴴw, for y = aᴴw
  if (da.defined()) right = right.defined() ? right - matmul(da, y) : -matmul(da, y);
  if (is_tall(a)) {
    right = matmul(ac, right, {.transpose_a = true});
    if (da.defined()) right = right + matmul(conj(da), b - matmul(a, y), {.transpose_a = true});
    dy[0] = cholesky_solve(factor, right);
  } else {
    if (da.defined()) {
      rest = matmul(conj(da), cholesky_solve(factor, b), {.transpose_a = true});
      right = right - matmul(a, rest);
    }
    const Tensor through = matmul(ac, cholesky_solve(factor, right), {.transpose_a = true});
    dy[0] = rest.defined() ? rest + through : through;
  }
}

constexpr Op kLstsq = {
    .name = "lstsq",
    .doc =
        "The y that minimizes |a y - b|² + l2 |y|², by the normal equations: y = (aᴴa + l2)⁻¹ aᴴb = aᴴ(a "
        "aᴴ + l2)⁻¹ b, whichever system is smaller.",
    .tensorflow = "MatrixSolveLs",
    .args = {"a", "b"},
    .infer = infer_lstsq,
    .forward = {run_lstsq, Outputs::by_kernel},
    .rule = Rule::custom({.x = 0b11, .y = true}, lstsq_vjp, lstsq_jvp),
};

constexpr Op kQr = {
    .name = "qr",
    .doc =
        "The factorization x = q r, where q has orthonormal columns and r is upper triangular with a "
        "real diagonal.",
    .tensorflow = "Qr",
    .args = {"x"},
    .infer = infer_qr,
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::qr(c.x[0], y[0], y[1]); },
    .rule = Rule::custom({.x = 1, .y = true}, qr_vjp),
};

constexpr Op kEigh = {
    .name = "eigh",
    .doc =
        "The eigendecomposition x = v diag(w) vᴴ of a symmetric or Hermitian matrix, of which only the "
        "lower triangle is read; w ascends. The component of largest magnitude in each column of v is "
        "positive.",
    .tensorflow = "SelfAdjointEigV2",
    .args = {"x"},
    .infer = infer_eigh,
    .forward = [](const Call& c,
                  std::span<Tensor> y) { require_convergence(c, kernels::eigh(c.x[0], y[0], y[1])); },
    .rule = Rule::custom({.y = true}, eigh_vjp).accepting_none(),
};

constexpr Op kSvd = {
    .name = "svd",
    .doc =
        "The singular value decomposition x = u diag(s) vh, where u has orthonormal columns and vh "
        "orthonormal rows; s descends. The component of largest magnitude in each column of u is "
        "positive.",
    .tensorflow = "Svd",
    .args = {"x"},
    .infer = infer_svd,
    .forward = [](const Call& c,
                  std::span<Tensor> y) { require_convergence(c, kernels::svd(c.x[0], y[0], y[1], y[2])); },
    .rule = Rule::custom({.y = true}, svd_vjp).accepting_none(),
};

constexpr Op kPinv = {
    .name = "pinv",
    .doc =
        "The pseudoinverse of matrices; singular values of at most rcond times the largest are treated "
        "as zero.",
    .args = {"x"},
    .infer = infer_pinv,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          require_convergence(c, kernels::pinv(c.x[0], c.attrs<Cutoff>().rcond, y[0]));
        },
    .rule = Rule::custom({.x = 1, .y = true}, pinv_vjp),
};

constexpr const Op* decompositions_table[] = {&kLstsq, &kQr, &kEigh, &kSvd, &kPinv};

Tensor with_zeros_below(const Tensor& x, std::int64_t rows) {
  Shape none, below;
  for (int d = 0; d < x.ndim(); ++d)
    none.push_back(0), below.push_back(d == x.ndim() - 2 ? rows : 0);
  return pad(x, none, below);
}

// a with √l2 times the identity appended below.
Tensor with_weight_below(const Tensor& a, double l2) {
  const std::int64_t n = extent(a, 1);
  const Tensor weight = eye(n, n, a.dtype()) * std::sqrt(l2);
  return concat({a, broadcast_to(weight, with_last(a, 2, {n, n}).shape)}, -2);
}

}   // namespace

Qr qr(const Tensor& x, QrOptions options) {
  std::vector<Tensor> y = kQr.run({&x, 1}, Full{options.full});
  return {std::move(y[0]), std::move(y[1])};
}
Eigh eigh(const Tensor& x) {
  std::vector<Tensor> y = kEigh.run({&x, 1});
  return {std::move(y[0]), std::move(y[1])};
}
Tensor eigvalsh(const Tensor& x) { return eigh(x).values; }
Svd svd(const Tensor& x, SvdOptions options) {
  std::vector<Tensor> y = kSvd.run({&x, 1}, Full{options.full});
  return {std::move(y[0]), std::move(y[1]), std::move(y[2])};
}
Tensor svdvals(const Tensor& x) { return svd(x).s; }

Tensor pinv(const Tensor& x, std::optional<double> rcond) {
  const double epsilon = real_of(computed_in(x.dtype())) == DType::f32 ? 0x1p-23 : 0x1p-52;
  const double largest = static_cast<double>(std::max(extent(x, 1), extent(x, 2)));
  return kPinv(x, Cutoff{rcond.value_or(10 * largest * epsilon)});
}

Tensor lstsq(const Tensor& a, const Tensor& b, const LstsqOptions& options) {
  if (!(options.l2 >= 0)) throw_error<ArgumentError>("lstsq: l2 is {}; use 0 or more", options.l2);
  if (options.fast) return kLstsq(a, b, Ridge{options.l2});
  const Tensor* x[] = {&a, &b};
  kLstsq.infer.one({.op = kLstsq, .x = {x, 2}});   // runs the checks of the op
  if (options.l2 == 0) return matmul(pinv(a), b);
  return matmul(pinv(with_weight_below(a, options.l2)), with_zeros_below(b, extent(a, 1)));
}

std::span<const Op* const> decompositions_ops() { return decompositions_table; }

}   // namespace tapedeck
