// Cumulative sums and products along an axis, cumulative logsumexp, and linear recurrences. Each row along
// the axis is computed by one thread.
#include "kernels/reduce/scan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/reduce/fold.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kScanCut = {1 << 14, 1 << 16};   // of elements
constexpr std::int64_t kColumns = 128;         // columns that are scanned side by side

// The accumulator's type: f64 for f32. Integers are scanned as unsigned, whose overflow is defined.
template <class T> struct Accumulator { using type = T; };
template <> struct Accumulator<float> { using type = double; };

// Scans one row. Combines four elements at a time before it adds them to the rest, so that only every fourth
// step waits for the previous one.
template <class Fold, bool exclusive, class T>
void scan_row(const T* x, std::int64_t n, std::int64_t step, T* y) {
  using A = typename Accumulator<T>::type;
  constexpr Fold f;
  A before = Fold::template identity<A>;
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4, x += 4 * step, y += 4 * step) {
    const A a = static_cast<A>(x[0]), b = f(a, static_cast<A>(x[step])), c2 = static_cast<A>(x[2 * step]);
    const A c = f(b, c2), d = f(b, f(c2, static_cast<A>(x[3 * step])));
    const A at[] = {before, f(before, a), f(before, b), f(before, c), f(before, d)};
    for (std::int64_t k = 0; k < 4; ++k)
      y[k * step] = static_cast<T>(at[exclusive ? k : k + 1]);
    before = at[4];
  }
  for (; i < n; ++i, x += step, y += step) {
    const A after = f(before, static_cast<A>(*x));
    *y = static_cast<T>(exclusive ? before : after);
    before = after;
  }
}

// Scans several columns side by side.
template <class Fold, bool exclusive, class T>
void scan_columns(const T* x, std::int64_t n, std::int64_t step, std::int64_t columns, T* y) {
  using A = typename Accumulator<T>::type;
  constexpr Fold f;
  A before[kColumns];
  std::fill_n(before, columns, Fold::template identity<A>);
  for (std::int64_t i = 0; i < n; ++i, x += step, y += step)
    for (std::int64_t c = 0; c < columns; ++c) {
      const A after = f(before[c], static_cast<A>(x[c]));
      y[c] = static_cast<T>(exclusive ? before[c] : after);
      before[c] = after;
    }
}

template <class Fold, bool exclusive, class T>
void scan_all(const T* x, const AxisView& view, bool reverse, T* y) {
  const std::int64_t n = view.extent, after = view.after, slab = n * after;
  const std::int64_t first = reverse ? slab - after : 0, step = reverse ? -after : after;
  if (after == 1)
    return parallel_for(view.before, cut_of(kScanCut, n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t from = b * n + first;
        if (reverse)
          scan_row<Fold, exclusive>(x + from, n, -1, y + from);
        else
          scan_row<Fold, exclusive>(x + from, n, 1, y + from);
      }
    });
  const std::int64_t groups = (after + kColumns - 1) / kColumns;
  parallel_for(
      view.before * groups, cut_of(kScanCut, n * std::min(after, kColumns)),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t column = i % groups * kColumns, from = i / groups * slab + first + column;
          scan_columns<Fold, exclusive>(x + from, n, step, std::min(kColumns, after - column), y + from);
        }
      });
}

template <class Fold> void scan(const Tensor& x, const AxisView& view, ScanOrder order, Tensor& y) {
  if (y.size() == 0) return;
  const auto of = [&]<class T>(T) {
    if (order.exclusive)
      scan_all<Fold, true>(elements<T>(x), view, order.reverse, elements<T>(y));
    else
      scan_all<Fold, false>(elements<T>(x), view, order.reverse, elements<T>(y));
  };
  switch (x.dtype()) {
    case DType::f32:
      return of(float{});
    case DType::f64:
      return of(double{});
    case DType::c64:
      return of(std::complex<float>{});
    case DType::c128:
      return of(std::complex<double>{});
    case DType::i32:
      return of(std::uint32_t{});
    default:
      return of(std::uint64_t{});
  }
}

// Calls f(row) for the rows of n elements of y, in parallel.
template <class F> void each_row(const Tensor& y, std::int64_t n, std::int64_t work, F f) {
  if (y.size() == 0) return;
  parallel_for(y.size() / n, cut_of(kScanCut, n * work), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      f(row);
  });
}

}   // namespace

void cumsum(const Tensor& x, const AxisView& view, ScanOrder order, Tensor& y) {
  scan<Sum>(x, view, order, y);
}
void cumprod(const Tensor& x, const AxisView& view, ScanOrder order, Tensor& y) {
  scan<Product>(x, view, order, y);
}

void cumulative_logsumexp(const Tensor& x, std::int64_t n, bool reverse, Tensor& y) {
  visit_floating(x.dtype(), [&]<class T>(T) {
    each_row(y, n, 16, [&](std::int64_t row) {
      const T* in = elements<T>(x) + row * n;
      T* out = elements<T>(y) + row * n;
      double total = -std::numeric_limits<double>::infinity();
      for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t i = reverse ? n - 1 - k : k;
        const double next = static_cast<double>(in[i]), larger = next > total ? next : total,
                     smaller = next > total ? total : next;
        if (next != next)
          total = next;
        else if (std::isfinite(larger))
          total = larger + std::log1p(std::exp(smaller - larger));
        else if (total == total)
          total = larger;
        out[i] = static_cast<T>(total);
      }
    });
  });
}

void linear_recurrence(const Tensor& a, const Tensor& b, std::int64_t n, Tensor& y) {
  visit_trainable(y.dtype(), [&]<class T>(T) {
    each_row(y, n, 2, [&](std::int64_t row) {
      const T *factor = elements<T>(a) + row * n % a.size(), *term = elements<T>(b) + row * n;
      T* out = elements<T>(y) + row * n;
      out[0] = term[0];
      for (std::int64_t i = 1; i < n; ++i)
        out[i] = term[i] + factor[i] * out[i - 1];
    });
  });
}

}   // namespace tapedeck::kernels
