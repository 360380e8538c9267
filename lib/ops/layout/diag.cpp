// Diagonals, bands and triangles of matrices. In: matrices or diagonals. Out: diagonals of matrices, matrices
// made of diagonals, or the part of a matrix in a band.
#include "tapedeck/ops/diag.h"

#include <array>
#include <limits>

#include "core/cast.h"
#include "core/format.h"
#include "kernels/layout/copy.h"
#include "kernels/layout/diag.h"
#include "ops/axes.h"
#include "ops/layout/any_dtype.h"
#include "ops/layout/diag.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

// The shape of the diagonals of one matrix, packed side by side.
Shape packed(const kernels::DiagonalRows& d) {
  return d.count() == 1 ? Shape{d.longest} : Shape{d.count(), d.longest};
}

Spec infer_diagonals(const Call& c) {
  const kernels::DiagonalRows& d = c.attrs<DiagonalAttrs>().d;
  require_axes(c, 2);
  return replaced_last(c, {d.rows, d.columns}, packed(d));
}

Spec infer_matrix(const Call& c) {
  const kernels::DiagonalRows& d = c.attrs<DiagonalAttrs>().d;
  const Shape from = packed(d);
  require_axes(c, from.ndim());
  if (from.ndim() == 1 && c.x[0].ndim() == Shape::kMaxRank) c.throw_shape_error("more than 8 axes");
  return replaced_last(c, from, {d.rows, d.columns});
}

template <void (*move)(const Tensor&, const kernels::DiagonalRows&, Tensor&)>
void run_diagonals(const Call& c, std::span<Tensor> y) {
  const auto& [d, padding] = c.attrs<DiagonalAttrs>();
  if (padding == 0)
    kernels::clear(y[0]);
  else
    fill(y[0], padding);
  move(c.x[0], d, y[0]);
}

Spec infer_set(const Call& c) {
  const kernels::DiagonalRows& d = c.attrs<DiagonalAttrs>().d;
  const Shape expected = replaced_last(c, {d.rows, d.columns}, packed(d)).shape;
  if (c.x[1].shape() != expected) c.throw_shape_error(fmt::format("diagonal must be {}", expected));
  require_one_dtype(c);
  return c.x[0].spec();
}

void run_set(const Call& c, std::span<Tensor> y) {
  if (y[0].size() == 0) return;
  kernels::copy_runs(c.x[0], {0, 0}, y[0], {0, 0}, 1, y[0].size());
  kernels::put_diagonals(c.x[1], c.attrs<DiagonalAttrs>().d, y[0]);
}

// The main diagonal of a tensor with twice the axes of `diagonal`, treated as an n × n matrix.
kernels::DiagonalRows main_diagonals(const Shape& diagonal) {
  const std::int64_t n = diagonal.size();
  return {0, 0, n, n, n, true, true};
}
Shape last_axes(const Tensor& x, int n) { return Shape(x.shape().dims().last(static_cast<std::size_t>(n))); }

Spec infer_diag(const Call& c) {
  const int axes = c.attrs<AxesAttrs>().axes;
  require_axes(c, axes);
  if (c.x[0].ndim() + axes > Shape::kMaxRank) c.throw_shape_error("the result has more than 8 axes");
  Shape shape = c.x[0].shape();
  for (const std::int64_t n : last_axes(c.x[0], axes))
    shape.push_back(n);
  return {c.x[0].dtype(), shape};
}

Spec infer_diag_part(const Call& c) {
  const Tensor& x = c.x[0];
  const int axes = c.attrs<AxesAttrs>().axes;
  require_axes(c, 2 * axes);
  const Shape last = last_axes(x, axes),
              first(x.shape().dims().first(static_cast<std::size_t>(x.ndim() - axes)));
  if (Shape(first.dims().last(static_cast<std::size_t>(axes))) != last)
    c.throw_shape_error("the two halves of the axes must have equal extents");
  return {x.dtype(), first};
}

Spec infer_trace(const Call& c) {
  require_axes(c, 2);
  if (size_of(c.x[0].dtype()) == 1) c.throw_dtype_error("i8, u8 and bool cannot be summed, use astype");
  return {c.x[0].dtype(), without(c.x[0].shape(), 0b11, false)};
}

Spec infer_band(const Call& c) {
  if (c.x[0].ndim() < 2) c.throw_shape_error("takes matrices");
  return c.x[0].spec();
}

Tensor part(const Tensor& x, const kernels::DiagonalRows& d, double padding = 0);
Tensor matrix(const Tensor& x, const kernels::DiagonalRows& d, double padding = 0);
Tensor band(const Tensor& x, const BandAttrs& attrs);
Tensor spread(const Tensor& x, const AxesAttrs& attrs);
Tensor diagonal_of(const Tensor& x, const AxesAttrs& attrs);

kernels::DiagonalRows main_diagonal(const Tensor& x) {
  return diagonals(0, x.shape()[x.ndim() - 2], x.shape()[x.ndim() - 1], DiagonalAlign::right_left);
}

constexpr Op kMatrixDiagPart = {
    .name = "matrix_diag_part",
    .doc =
        "Diagonals k of matrices as rows: y[…, h - k, i] = x[…, i - min(k, 0), i + max(k, 0)], where h "
        "is the highest k.",
    .tensorflow = "MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3",
    .args = {"x"},
    .infer = infer_diagonals,
    .forward = moves(run_diagonals<kernels::take_diagonals>),
    .rule = Rule::custom(
        {},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = matrix(std::move(dy[0]).dense(), c.attrs<DiagonalAttrs>().d);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          dy[0] = part(dx[0], c.attrs<DiagonalAttrs>().d);
        }),
};

constexpr Op kMatrixDiag = {
    .name = "matrix_diag",
    .doc =
        "Matrices with rows as their diagonals k: y[…, i - min(k, 0), i + max(k, 0)] = x[…, h - k, i], "
        "where h is the highest k; the adjoint of matrix_diag_part.",
    .tensorflow = "MatrixDiag MatrixDiagV2 MatrixDiagV3",
    .args = {"x"},
    .infer = infer_matrix,
    .forward = moves(run_diagonals<kernels::put_diagonals>),
    .rule = Rule::custom(
        {},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = part(std::move(dy[0]).dense(), c.attrs<DiagonalAttrs>().d);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          dy[0] = matrix(dx[0], c.attrs<DiagonalAttrs>().d);
        }),
};

constexpr Op kMatrixSetDiag = {
    .name = "matrix_set_diag",
    .doc = "Matrices with diagonals replaced by rows, in the layout of matrix_diag.",
    .tensorflow = "MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3",
    .args = {"x", "diagonal"},
    .infer = infer_set,
    .forward = moves(run_set),
    .rule = Rule::custom(
        {},
        [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
          const Tensor dy = std::move(dys[0]).dense();
          const kernels::DiagonalRows& d = c.attrs<DiagonalAttrs>().d;
          if (c.needs_gradient(0))
            dx[0] = c.op(dy, zeros(behind_extra(dy, 2, packed(d)), dy.dtype()), DiagonalAttrs{d, 0});
          if (c.needs_gradient(1)) dx[1] = part(dy, d);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          const auto tangent = [&](int i) {
            return dx[i].defined() ? dx[i] : zeros(c.x[i].shape(), c.x[i].dtype());
          };
          dy[0] = c.op(tangent(0), tangent(1), c.attrs<DiagonalAttrs>());
        }),
};

constexpr Op kDiag = {
    .name = "diag",
    .doc = "x on the main diagonal of a tensor of twice the rank, 0 elsewhere: y[i…, i…] = x[i…].",
    .tensorflow = "Diag",
    .args = {"x"},
    .infer = infer_diag,
    .forward = moves([](const Call& c, std::span<Tensor> y) {
      kernels::clear(y[0]);
      kernels::put_diagonals(c.x[0], main_diagonals(last_axes(c.x[0], c.attrs<AxesAttrs>().axes)), y[0]);
    }),
    .rule =
        Rule::linear([](const Call& c, const Tensor& dy) { return diagonal_of(dy, c.attrs<AxesAttrs>()); }),
};

constexpr Op kDiagPart = {
    .name = "diag_part",
    .doc =
        "The main diagonal of a tensor in which the first and the second half of the axes have the same "
        "extents: y[i…] = x[i…, i…].",
    .tensorflow = "DiagPart",
    .args = {"x"},
    .infer = infer_diag_part,
    .forward = moves([](const Call& c, std::span<Tensor> y) {
      kernels::take_diagonals(c.x[0], main_diagonals(last_axes(c.x[0], c.attrs<AxesAttrs>().axes)), y[0]);
    }),
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return spread(dy, c.attrs<AxesAttrs>()); }),
};

constexpr Op kTrace = {
    .name = "trace",
    .doc = "The sum of the main diagonal of each matrix: y = Σ x[…, i, i].",
    .args = {"x"},
    .infer = infer_trace,
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  y[0] = sum(part(c.x[0], main_diagonal(c.x[0])), -1);
                },
                Outputs::by_kernel},
    .rule = Rule::linear([](const Call& c, const Tensor& dy) {
      const kernels::DiagonalRows d = main_diagonal(c.x[0]);
      return matrix(broadcast_to(expand_dims(dy, -1), behind_extra(expand_dims(dy, -1), 1, {d.longest})), d);
    }),
};

constexpr Op kBandPart = {
    .name = "band_part",
    .doc = "x where low ≤ column - row ≤ high, else 0, for matrices in the last two axes.",
    .tensorflow = "MatrixBandPart BatchMatrixBandPart",
    .args = {"x"},
    .infer = infer_band,
    .forward = moves([](const Call& c, std::span<Tensor> y) {
      kernels::band(c.x[0], c.attrs<BandAttrs>().low, c.attrs<BandAttrs>().high, y[0]);
    }),
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return band(dy, c.attrs<BandAttrs>()); }),
};

constexpr const Op* diag_table[] = {&kMatrixDiagPart, &kMatrixDiag, &kMatrixSetDiag, &kDiag,
                                    &kDiagPart,       &kTrace,      &kBandPart};

Tensor part(const Tensor& x, const kernels::DiagonalRows& d, double padding) {
  return kMatrixDiagPart(x, DiagonalAttrs{d, padding});
}
Tensor matrix(const Tensor& x, const kernels::DiagonalRows& d, double padding) {
  return kMatrixDiag(x, DiagonalAttrs{d, padding});
}
Tensor spread(const Tensor& x, const AxesAttrs& attrs) { return kDiag(x, attrs); }
Tensor diagonal_of(const Tensor& x, const AxesAttrs& attrs) { return kDiagPart(x, attrs); }
Tensor band(const Tensor& x, const BandAttrs& attrs) { return kBandPart(x, attrs); }

void require_diagonals(std::string_view op, Diagonals k) {
  if (k.low > k.high)
    throw_error<ArgumentError>("{}: diagonals from {} to {}; give the lowest first", op, k.low, k.high);
}

// The diagonals k of the matrices in x. Throws ShapeError if x does not have them.
kernels::DiagonalRows diagonals_of(std::string_view op, const Tensor& x, Diagonals k, DiagonalAlign align) {
  require_diagonals(op, k);
  if (x.ndim() < 2) throw_error<ShapeError>("{}: takes matrices: x is {}", op, x.spec());
  const std::int64_t rows = x.shape()[x.ndim() - 2], columns = x.shape()[x.ndim() - 1];
  for (const int i : {k.low, k.high})
    if (i && (i <= -rows || i >= columns))
      throw_error<ShapeError>("{}: diagonal {} is outside x, {}", op, i, x.spec());
  return diagonals(k, rows, columns, align);
}

}   // namespace

Tensor matrix_diag_part(const Tensor& x, Diagonals k, double padding, DiagonalAlign align) {
  return part(x, diagonals_of("matrix_diag_part", x, k, align), padding);
}

Tensor matrix_diag(const Tensor& x, Diagonals k, const MatrixDiagOptions& options) {
  require_diagonals("matrix_diag", k);
  const int axes = k.low == k.high ? 1 : 2;
  if (x.ndim() < axes || (axes == 2 && x.shape()[x.ndim() - 2] != std::int64_t{k.high} - k.low + 1))
    throw_error<ShapeError>("matrix_diag: x needs a row for each diagonal from {} to {}: x is {}", k.low,
                            k.high, x.spec());
  if (x.shape()[x.ndim() - 1] > kAllDiagonals)
    throw_error<ShapeError>("matrix_diag: too many elements: x is {}", x.spec());
  const std::int64_t n = x.shape()[x.ndim() - 1], least_rows = n - std::min(k.high, 0),
                     least_columns = n + std::max(k.low, 0);
  std::int64_t rows = options.rows, columns = options.columns;
  if (rows < -1 || columns < -1)
    throw_error<ArgumentError>(
        "matrix_diag: rows is {}, columns {}; they are extents, or -1 for the smallest ones", rows, columns);
  if (rows < 0 && columns < 0) rows = columns = std::max(least_rows, least_columns);
  if (rows < 0) rows = least_rows;
  if (columns < 0) columns = least_columns;
  const kernels::DiagonalRows d = diagonals(k, rows, columns, options.align);
  if (d.longest != n)
    throw_error<ShapeError>("matrix_diag: the longest diagonal of {} x {} matrices has {} elements: x is {}",
                            rows, columns, d.longest, x.spec());
  return matrix(x, d, options.padding);
}

Tensor matrix_set_diag(const Tensor& x, const Tensor& diagonal, Diagonals k, DiagonalAlign align) {
  return kMatrixSetDiag(x, diagonal, DiagonalAttrs{diagonals_of("matrix_set_diag", x, k, align), 0});
}

Tensor diag(const Tensor& x) { return spread(x, {x.ndim()}); }
Tensor diag_part(const Tensor& x) {
  if (x.ndim() % 2)
    throw_error<ShapeError>("diag_part: the two halves of the axes must have equal extents: x is {}",
                            x.spec());
  return diagonal_of(x, {x.ndim() / 2});
}

Tensor diagonal(const Tensor& x) {
  return part(x, diagonals_of("diagonal", x, 0, DiagonalAlign::right_left), 0);
}
Tensor trace(const Tensor& x) { return kTrace(x); }

Tensor band_part(const Tensor& x, std::int64_t lower, std::int64_t upper) {
  return band(x, {lower < 0 ? -kAllDiagonals : -lower, upper < 0 ? kAllDiagonals : upper});
}
Tensor tril(const Tensor& x, std::int64_t k) { return band(x, {-kAllDiagonals, k}); }
Tensor triu(const Tensor& x, std::int64_t k) { return band(x, {k, kAllDiagonals}); }

std::span<const Op* const> diag_ops() { return diag_table; }

}   // namespace tapedeck
