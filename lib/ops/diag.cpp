// Diagonals, bands and triangles of matrices. In: matrices or diagonals. Out: the other, or the part of a matrix in a band.
#include "tapedeck/ops/diag.h"

#include <limits>

#include "base/format.h"
#include "kernels/copy.h"
#include "kernels/diag.h"
#include "ops/axes.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using namespace samples;

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max() / 2;   // further than any diagonal

// Of matrices with these extents; one diagonal has no axis for it.
struct DiagonalAttrs { kernels::DiagonalRows d; double padding; };
struct BandAttrs { std::int64_t low, high; };

kernels::DiagonalRows diagonals(Diagonals k, std::int64_t rows, std::int64_t columns, DiagonalAlign align) {
  kernels::DiagonalRows d{k.low, k.high, rows, columns, 0, align == DiagonalAlign::left_left || align == DiagonalAlign::left_right,
                          align == DiagonalAlign::left_left || align == DiagonalAlign::right_left};
  for (std::int64_t i = k.low; i <= k.high; ++i) d.longest = std::max(d.longest, d.length(i));
  return d;
}

// The diagonals of one matrix, side by side.
Shape packed(const kernels::DiagonalRows& d) { return d.count() == 1 ? Shape{d.longest} : Shape{d.count(), d.longest}; }

Spec infer_part(const Call& c) {
  const kernels::DiagonalRows& d = c.attrs<DiagonalAttrs>().d;
  require_axes(c, 2);
  return replaced_last(c, {d.rows, d.columns}, packed(d));
}

Spec infer_matrix(const Call& c) {
  const kernels::DiagonalRows& d = c.attrs<DiagonalAttrs>().d;
  const Shape from = packed(d);
  require_axes(c, from.ndim());
  if (from.ndim() == 1 && c.x[0].ndim() == Shape::kMaxRank) throw_shape_error(c, "more than 8 axes");
  return replaced_last(c, from, {d.rows, d.columns});
}

template <void (*move)(const Tensor&, const kernels::DiagonalRows&, Tensor&)> void run_move(const Call& c, std::span<Tensor> y) {
  const auto& [d, padding] = c.attrs<DiagonalAttrs>();
  if (padding == 0) kernels::clear(y[0]);
  else y[0] = full(y[0].shape(), padding, y[0].dtype());
  move(c.x[0], d, y[0]);
}

Spec infer_band(const Call& c) {
  if (c.x[0].ndim() < 2) throw_shape_error(c, "takes matrices");
  return c.x[0].spec();
}

Tensor part(const Tensor& x, const kernels::DiagonalRows& d, double padding = 0);
Tensor matrix(const Tensor& x, const kernels::DiagonalRows& d, double padding = 0);
Tensor band(const Tensor& x, const BandAttrs& attrs);

OwnedAttrs some(Diagonals k, std::int64_t rows, std::int64_t columns, DiagonalAlign align = DiagonalAlign::right_left, double padding = 0) {
  return Attrs(DiagonalAttrs{diagonals(k, rows, columns, align), padding});
}
OwnedAttrs within(std::int64_t low, std::int64_t high) { return Attrs(BandAttrs{low, high}); }

constexpr Op table[] = {
    {.name = "matrix_diag_part",
     .doc = "Diagonals of matrices as rows: y[…, h - k, i] = x[…, i - min(k, 0), i + max(k, 0)], where h is the highest.",
     .tensorflow = "MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3",
     .args = {"x"},
     .infer = infer_part,
     .forward = run_move<kernels::take_diagonals>,
     .rule = custom({}, [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) { dx[0] = matrix(std::move(dy[0]).dense(), c.attrs<DiagonalAttrs>().d); },
                    [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = part(dx[0], c.attrs<DiagonalAttrs>().d); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({37, 5}, -1, 1)}, .attrs = some(0, 37, 5)},
           {.inputs = {uniform({2, 3, 4}, -1, 1)}, .attrs = some({-2, 3}, 3, 4, DiagonalAlign::left_right, 7)},
           {.inputs = {uniform({2, 4, 3}, -1, 1)}, .attrs = some({1, 2}, 4, 3, DiagonalAlign::left_left)},
           {.inputs = {uniform({2, 0, 3}, -1, 1)}, .attrs = some(0, 0, 3)},
           {.inputs = {f64({{1, 2, 3}, {4, 5, 6}})}, .attrs = some(1, 2, 3), .expected = {f64({2, 6})}, .oracle = "np.diagonal(x, 1)"},
           {.inputs = {f64({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}})}, .attrs = some({-1, 1}, 3, 3, DiagonalAlign::right_left, -1),
            .expected = {f64({{-1, 2, 6}, {1, 5, 9}, {4, 8, -1}})}, .oracle = "np.stack([np.r_[-1, np.diagonal(x, 1)], np.diagonal(x), np.r_[np.diagonal(x, -1), -1]])"}};
     }},

    {.name = "matrix_diag",
     .doc = "Matrices with rows as their diagonals: y[…, i - min(k, 0), i + max(k, 0)] = x[…, h - k, i], where h is the highest; the adjoint of matrix_diag_part.",
     .tensorflow = "MatrixDiag MatrixDiagV2 MatrixDiagV3",
     .args = {"x"},
     .infer = infer_matrix,
     .forward = run_move<kernels::put_diagonals>,
     .rule = custom({}, [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) { dx[0] = part(std::move(dy[0]).dense(), c.attrs<DiagonalAttrs>().d); },
                    [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = matrix(dx[0], c.attrs<DiagonalAttrs>().d); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({3, 37}, -1, 1)}, .attrs = some(0, 37, 37)},
           {.inputs = {uniform({2, 6, 3}, -1, 1)}, .attrs = some({-2, 3}, 3, 4, DiagonalAlign::left_right, 7)},
           {.inputs = {uniform({2, 2, 2}, -1, 1)}, .attrs = some({1, 2}, 4, 3, DiagonalAlign::right_right)},
           {.inputs = {uniform({2, 0}, -1, 1)}, .attrs = some(0, 0, 0)},
           {.inputs = {f64({2, 6})}, .attrs = some(-1, 3, 3), .expected = {f64({{0, 0, 0}, {2, 0, 0}, {0, 6, 0}})}, .oracle = "np.diag(x, -1)"},
           {.inputs = {f64({{0, 2, 6}, {1, 5, 9}})}, .attrs = some({0, 1}, 3, 3), .expected = {f64({{1, 2, 0}, {0, 5, 6}, {0, 0, 9}})},
            .oracle = "np.diag(x[0, 1:], 1) + np.diag(x[1])"}};
     }},

    {.name = "band_part",
     .doc = "x where low ≤ column - row ≤ high, else 0, of matrices in the last two axes.",
     .tensorflow = "MatrixBandPart BatchMatrixBandPart",
     .args = {"x"},
     .infer = infer_band,
     .forward = [](const Call& c, std::span<Tensor> y) { kernels::band(c.x[0], c.attrs<BandAttrs>().low, c.attrs<BandAttrs>().high, y[0]); },
     .rule = linear([](const Call& c, const Tensor& dy) { return band(dy, c.attrs<BandAttrs>()); }),
     .samples = [] {
       return std::vector<Sample>{
           {.inputs = {uniform({37, 5}, -1, 1)}, .attrs = within(-1, 2)},
           {.inputs = {uniform({2, 3, 6}, -1, 1)}, .attrs = within(2, 3)},
           {.inputs = {uniform({2, 3, 4}, -1, 1)}, .attrs = within(9, kAll)},
           {.inputs = {uniform({0, 3}, -1, 1)}, .attrs = within(0, 0)},
           {.inputs = {f64({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}})}, .attrs = within(-kAll, -1), .expected = {f64({{0, 0, 0}, {4, 0, 0}, {7, 8, 0}})}, .oracle = "np.tril(x, -1)"},
           {.inputs = {f64({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}})}, .attrs = within(0, 1), .expected = {f64({{1, 2, 0}, {0, 5, 6}, {0, 0, 9}})}, .oracle = "np.triu(np.tril(x, 1))"}};
     }},
};

Tensor part(const Tensor& x, const kernels::DiagonalRows& d, double padding) { return find(table, "matrix_diag_part").with(DiagonalAttrs{d, padding}, x); }
Tensor matrix(const Tensor& x, const kernels::DiagonalRows& d, double padding) { return find(table, "matrix_diag").with(DiagonalAttrs{d, padding}, x); }
Tensor band(const Tensor& x, const BandAttrs& attrs) { return find(table, "band_part").with(attrs, x); }

void require_diagonals(std::string_view op, Diagonals k) {
  if (k.low > k.high) throw_error<ArgumentError>("{}: diagonals from {} to {}; the lowest comes first", op, k.low, k.high);
}

// The diagonals of the matrices in x, which have them.
kernels::DiagonalRows diagonals_of(std::string_view op, const Tensor& x, Diagonals k, DiagonalAlign align) {
  require_diagonals(op, k);
  if (x.ndim() < 2) throw_error<ShapeError>("{}: takes matrices: x is {}", op, x.spec());
  const std::int64_t rows = x.shape()[x.ndim() - 2], columns = x.shape()[x.ndim() - 1];
  for (const int i : {k.low, k.high})
    if (i && (i <= -rows || i >= columns)) throw_error<ShapeError>("{}: diagonal {} lies outside of x, {}", op, i, x.spec());
  return diagonals(k, rows, columns, align);
}

}  // namespace

Tensor matrix_diag_part(const Tensor& x, Diagonals k, double padding, DiagonalAlign align) { return part(x, diagonals_of("matrix_diag_part", x, k, align), padding); }

Tensor matrix_diag(const Tensor& x, Diagonals k, const MatrixDiagOptions& options) {
  require_diagonals("matrix_diag", k);
  const int axes = k.low == k.high ? 1 : 2;
  if (x.ndim() < axes || (axes == 2 && x.shape()[x.ndim() - 2] != std::int64_t{k.high} - k.low + 1))
    throw_error<ShapeError>("matrix_diag: x needs a row for each diagonal from {} to {}: x is {}", k.low, k.high, x.spec());
  const std::int64_t n = x.shape()[x.ndim() - 1], least_rows = n - std::min(k.high, 0), least_columns = n + std::max(k.low, 0);
  std::int64_t rows = options.rows, columns = options.columns;
  if (rows < 0 && columns < 0) rows = columns = std::max(least_rows, least_columns);
  if (rows < 0) rows = least_rows;
  if (columns < 0) columns = least_columns;
  const kernels::DiagonalRows d = diagonals(k, rows, columns, options.align);
  if (d.longest != n) throw_error<ShapeError>("matrix_diag: the longest diagonal of {} x {} matrices has {} elements: x is {}", rows, columns, d.longest, x.spec());
  return matrix(x, d, options.padding);
}

Tensor matrix_set_diag(const Tensor& x, const Tensor& diagonal, Diagonals k, DiagonalAlign align) {
  const kernels::DiagonalRows d = diagonals_of("matrix_set_diag", x, k, align);
  const Shape expected = behind_extra(x, 2, packed(d));
  if (diagonal.shape() != expected) throw_error<ShapeError>("matrix_set_diag: diagonal must be {}: x is {}, diagonal is {}", expected, x.spec(), diagonal.spec());
  if (diagonal.dtype() != x.dtype()) throw_error<DTypeError>("matrix_set_diag: dtypes differ: x is {}, diagonal is {}", x.spec(), diagonal.spec());
  return where(matrix(ones(packed(d), DType::boolean), d), matrix(diagonal, d), x);
}

Tensor diag(const Tensor& x) {
  if (2 * x.ndim() > Shape::kMaxRank) throw_error<ShapeError>("diag: the result has more than 8 axes: x is {}", x.spec());
  Shape shape = x.shape();
  for (const std::int64_t n : x.shape()) shape.push_back(n);
  return reshape(matrix_diag(reshape(x, {x.size()})), shape);
}

Tensor diag_part(const Tensor& x) {
  const auto half = static_cast<std::size_t>(x.ndim() / 2);
  const Shape first(x.shape().dims().first(half));
  if (x.ndim() % 2 || first != Shape(x.shape().dims().last(half))) throw_error<ShapeError>("diag_part: the first half of the axes must be as the second: x is {}", x.spec());
  return reshape(matrix_diag_part(reshape(x, {first.size(), first.size()})), first);
}

Tensor band_part(const Tensor& x, std::int64_t lower, std::int64_t upper) { return band(x, {lower < 0 ? -kAll : -lower, upper < 0 ? kAll : upper}); }
Tensor tril(const Tensor& x, std::int64_t k) { return band(x, {-kAll, k}); }
Tensor triu(const Tensor& x, std::int64_t k) { return band(x, {k, kAll}); }

std::span<const Op> diag_ops() { return table; }

}  // namespace tapedeck
