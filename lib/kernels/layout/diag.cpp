// Diagonals and bands of matrices: extracts diagonals, writes them, and keeps a band. Threads split the
// matrices or, for a band, their rows.
#include "kernels/layout/diag.h"

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kDiagCut = {1 << 15, 1 << 17};   // of elements

// Calls f(offset in the matrices, offset in the rows, length) for each diagonal of each matrix. One step
// along a diagonal is columns + 1 elements of the matrix.
template <class F> void each_diagonal(const DiagonalRows& d, std::int64_t batch, F f) {
  parallel_for(batch, cut_of(kDiagCut, d.count() * d.longest), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b)
      for (std::int64_t k = d.high; k >= d.low; --k) {
        const std::int64_t n = d.length(k), first = k >= 0 ? k : -k * d.columns;
        const std::int64_t aside = (k >= 0 ? d.left_above : d.left_below) ? 0 : d.longest - n;
        f(b * d.rows * d.columns + first, (b * d.count() + d.high - k) * d.longest + aside, n);
      }
  });
}

}   // namespace

void take_diagonals(const Tensor& x, const DiagonalRows& d, Tensor& y) {
  if (x.size() == 0 || y.size() == 0) return;
  visit_size(x.dtype(), [&]<class T>(T) {
    each_diagonal(d, x.size() / (d.rows * d.columns),
                  [&, step = d.columns + 1](std::int64_t offset, std::int64_t row, std::int64_t n) {
                    for (std::int64_t i = 0; i < n; ++i)
                      elements<T>(y)[row + i] = elements<T>(x)[offset + i * step];
                  });
  });
}

void put_diagonals(const Tensor& x, const DiagonalRows& d, Tensor& y) {
  if (x.size() == 0 || y.size() == 0) return;
  visit_size(x.dtype(), [&]<class T>(T) {
    each_diagonal(d, y.size() / (d.rows * d.columns),
                  [&, step = d.columns + 1](std::int64_t offset, std::int64_t row, std::int64_t n) {
                    for (std::int64_t i = 0; i < n; ++i)
                      elements<T>(y)[offset + i * step] = elements<T>(x)[row + i];
                  });
  });
}

void band(const Tensor& x, std::int64_t low, std::int64_t high, Tensor& y) {
  if (y.size() == 0) return;
  const std::int64_t rows = y.shape()[y.ndim() - 2], columns = y.shape()[y.ndim() - 1];
  visit_size(x.dtype(), [&]<class T>(T) {
    parallel_for(y.size() / columns, cut_of(kDiagCut, columns), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const std::int64_t row = r % rows;
        const std::int64_t first = low <= -row      ? 0
                                   : low >= columns ? columns
                                                    : std::min(row + low, columns),
                           last =
                               high >= columns - row ? columns : std::clamp(row + high + 1, first, columns);
        const T* from = elements<T>(x) + r * columns;
        T* to = elements<T>(y) + r * columns;
        std::fill(to, to + first, T(0));
        std::copy(from + first, from + last, to + first);
        std::fill(to + last, to + columns, T(0));
      }
    });
  });
}

}   // namespace tapedeck::kernels
