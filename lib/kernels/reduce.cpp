// Reductions in a fixed tree. Axes are merged into runs, and one run at a time is folded, the innermost first: along rows
// where it is contiguous, else down columns. Cuts between threads depend on sizes alone.
#include "kernels/reduce.h"

#include <algorithm>
#include <array>
#include <complex>
#include <memory>

#include "base/convert.h"
#include "base/parallel.h"
#include "base/visit.h"
#include "kernels/fold.h"
#include "tensor/storage.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kCut = {1 << 15, 1 << 17};   // of elements
constexpr std::int64_t kBlock = 1 << 15;   // elements of a row that are folded at once; the results of blocks are folded likewise
constexpr std::int64_t kRows = 128;        // the same for columns

template <class Fold, class T> T fold_row(const T* x, std::int64_t n) {
  if (n <= kBlock) return fold_block<Fold>(x, n);
  const std::int64_t blocks = (n + kBlock - 1) / kBlock;
  const auto parts = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(blocks));
  parallel_for(blocks, cut_of(kCut, kBlock), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) parts[static_cast<std::size_t>(b)] = fold_block<Fold>(x + b * kBlock, std::min(kBlock, n - b * kBlock));
  });
  return fold_row<Fold>(parts.get(), blocks);
}

// Folds n rows of `width` elements, `stride` apart, into y. Eight rows a pass: y is read and written once for all.
template <class Fold, class T> void fold_rows_into(const T* x, std::int64_t n, std::int64_t stride, std::int64_t width, T* __restrict y) {
  constexpr Fold f;
  std::int64_t r = 0;
  for (; r + 8 <= n; r += 8) {
    const T *a = x + r * stride, *b = a + stride, *c = b + stride, *d = c + stride;
    const T *e = d + stride, *g = e + stride, *h = g + stride, *i = h + stride;
    for (std::int64_t j = 0; j < width; ++j) y[j] = f(y[j], f(f(f(a[j], b[j]), f(c[j], d[j])), f(f(e[j], g[j]), f(h[j], i[j]))));
  }
  for (; r < n; ++r)
    for (std::int64_t j = 0; j < width; ++j) y[j] = f(y[j], x[r * stride + j]);
}

// y[j] = the fold of column j of a matrix of n rows.
template <class Fold, class T> void fold_columns(const T* x, std::int64_t n, std::int64_t width, T* y) {
  constexpr std::int64_t narrow = 64, strip = 2048;   // a strip of y stays in the first cache
  std::fill_n(y, width, Fold::template identity<T>);
  // Several rows of a narrow matrix make one wide row.
  if (const std::int64_t side_by_side = 2 * narrow / width; width < narrow && n >= 4 * side_by_side) {
    T wide[2 * narrow];
    const std::int64_t wide_rows = n / side_by_side, used = wide_rows * side_by_side;
    fold_columns<Fold>(x, wide_rows, width * side_by_side, wide);
    fold_rows_into<Fold>(wide, side_by_side, width, width, y);
    return fold_rows_into<Fold>(x + used * width, n - used, width, width, y);
  }
  const auto fold_piece = [&](std::int64_t piece, std::int64_t begin, std::int64_t end, T* out) {
    const std::int64_t first = piece * kRows, rows = std::min(kRows, n - first);
    for (std::int64_t j = begin; j < end; j += strip) fold_rows_into<Fold>(x + first * width + j, rows, width, std::min(strip, end - j), out + j);
  };
  if (n <= kRows) return parallel_for(width, Cut{strip, std::max(strip, kCut.least / n)}, [&](std::int64_t begin, std::int64_t end) { fold_piece(0, begin, end, y); });
  const std::int64_t pieces = (n + kRows - 1) / kRows;
  const auto parts = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(pieces * width));
  std::fill_n(parts.get(), pieces * width, Fold::template identity<T>);
  parallel_for(pieces, cut_of(kCut, kRows * width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) fold_piece(p, 0, width, parts.get() + p * width);
  });
  fold_columns<Fold>(parts.get(), pieces, width, y);
}

// Calls f(i) for i in [0, n). `work` elements each: much work uses threads inside f.
template <class F> void for_each(std::int64_t n, std::int64_t work, const F& f) {
  constexpr std::int64_t few = 16;
  if (n < few && work >= kCut.least) {
    for (std::int64_t i = 0; i < n; ++i) f(i);
    return;
  }
  parallel_for(n, cut_of(kCut, std::max<std::int64_t>(work, 1)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i);
  });
}

template <class Fold, class T> void fold_middle(const T* x, std::int64_t outer, std::int64_t n, std::int64_t inner, T* y) {
  if (inner == 1) for_each(outer, n, [&](std::int64_t i) { y[i] = fold_row<Fold>(x + i * n, n); });
  else for_each(outer, n * inner, [&](std::int64_t i) { fold_columns<Fold>(x + i * n * inner, n, inner, y + i * inner); });
}

struct Run { std::int64_t n; bool folded; };

// Neighbouring axes that are all folded, or all kept, are one run.
struct Runs {
  std::array<Run, Shape::kMaxRank> list;
  int count = 0;

  Runs(const Shape& shape, unsigned axes) {
    for (int d = 0; d < shape.ndim(); ++d) {
      const bool folded = axes >> (shape.ndim() - 1 - d) & 1;
      if (shape[d] == 1) continue;
      if (count && list[static_cast<std::size_t>(count - 1)].folded == folded) list[static_cast<std::size_t>(count - 1)].n *= shape[d];
      else list[static_cast<std::size_t>(count++)] = {shape[d], folded};
    }
  }
};

template <class Fold, class T> void fold(const Tensor& in, unsigned axes, T* y, std::int64_t y_size) {
  const T* x = elements<T>(in);
  if (in.size() == 0) {
    std::fill_n(y, y_size, Fold::template identity<T>);
    return;
  }
  const Runs runs(in.shape(), axes);
  std::unique_ptr<T[]> step;
  std::int64_t outer = in.size(), inner = 1;
  for (int r = runs.count; r-- > 0;) {
    const auto [n, folded] = runs.list[static_cast<std::size_t>(r)];
    outer /= n;
    if (!folded) {
      inner *= n;
      continue;
    }
    const bool last = r < 2;   // runs alternate
    std::unique_ptr<T[]> next = last ? nullptr : std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(outer * inner));
    fold_middle<Fold>(x, outer, n, inner, last ? y : next.get());
    if (last) return;
    step = std::move(next);
    x = step.get();
  }
  std::copy_n(x, y_size, y);
}

template <class Best, class T> std::int64_t arg_row(const T* x, std::int64_t n) {
  const T best = fold_block<Best>(x, n);
  const bool is_nan = best != best;   // xsimd's != is false for NaN
  std::int64_t i = 0;
  for (; i + kWidth<T> <= n; i += kWidth<T>)
    if (const auto v = Batch<T>::load_unaligned(x + i); xsimd::any(is_nan ? ~(v == v) : v == Batch<T>(best))) break;
  return std::find_if(x + i, x + n, [&](T v) { return is_nan ? v != v : v == best; }) - x;
}

template <class Best, class T> void arg_columns(const T* x, std::int64_t n, std::int64_t width, std::int64_t* y) {
  const auto best = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(width));
  std::copy_n(x, width, best.get());
  std::fill_n(y, width, 0);
  for (std::int64_t r = 1; r < n; ++r)
    for (std::int64_t j = 0; j < width; ++j)
      if (T v = x[r * width + j], &b = best[static_cast<std::size_t>(j)]; Best::better(v, b) || (v != v && b == b)) {
        b = v;
        y[j] = r;
      }
}

// The folds of numbers that are added or multiplied.
template <class Fold> void fold_numbers(const Tensor& x, unsigned axes, Tensor& y) {
  // Unsigned: overflow is then defined.
  switch (x.dtype()) {
    case DType::f32: return fold<Fold>(x, axes, elements<float>(y), y.size());
    case DType::f64: return fold<Fold>(x, axes, elements<double>(y), y.size());
    case DType::c64: return fold<Fold>(x, axes, elements<std::complex<float>>(y), y.size());
    case DType::c128: return fold<Fold>(x, axes, elements<std::complex<double>>(y), y.size());
    case DType::i32: return fold<Fold>(x, axes, elements<std::uint32_t>(y), y.size());
    default: return fold<Fold>(x, axes, elements<std::uint64_t>(y), y.size());
  }
}

template <class Best> void extreme(const Tensor& x, unsigned axes, Tensor& y) {
  visit(x.dtype(), [&](auto one) {
    using T = decltype(one);
    if constexpr (!std::is_same_v<T, bool>) fold<Best>(x, axes, elements<T>(y), y.size());
  });
}

template <class Best> void arg_extreme(const Tensor& x, int axis, Tensor& y) {
  std::int64_t inner = 1;
  for (int d = x.ndim() + axis + 1; d < x.ndim(); ++d) inner *= x.shape()[d];
  const std::int64_t n = x.shape()[x.ndim() + axis];
  std::int64_t* out = elements<std::int64_t>(y);
  visit(x.dtype(), [&](auto one) {
    using T = decltype(one);
    if constexpr (!std::is_same_v<T, bool>) {
      const T* in = elements<T>(x);
      for_each(y.size() / std::max<std::int64_t>(inner, 1), n * inner, [&](std::int64_t i) {
        if (inner == 1) out[i] = arg_row<Best>(in + i * n, n);
        else arg_columns<Best>(in + i * n * inner, n, inner, out + i * inner);
      });
    }
  });
}

}  // namespace

void sum(const Tensor& x, unsigned axes, Tensor& y) { fold_numbers<Sum>(x, axes, y); }
void prod(const Tensor& x, unsigned axes, Tensor& y) { fold_numbers<Product>(x, axes, y); }

void mean(const Tensor& x, unsigned axes, Tensor& y) {
  sum(x, axes, y);
  visit_trainable(y.dtype(), [&](auto one) {
    using T = decltype(one);
    const auto count = convert<T>(y.size() ? x.size() / y.size() : 0);
    for (T *p = elements<T>(y), *end = p + y.size(); p < end; ++p) *p /= count;
  });
}

void max(const Tensor& x, unsigned axes, Tensor& y) { extreme<Max>(x, axes, y); }
void min(const Tensor& x, unsigned axes, Tensor& y) { extreme<Min>(x, axes, y); }
void argmax(const Tensor& x, int axis, Tensor& y) { arg_extreme<Max>(x, axis, y); }
void argmin(const Tensor& x, int axis, Tensor& y) { arg_extreme<Min>(x, axis, y); }
void any(const Tensor& x, unsigned axes, Tensor& y) { fold<Or>(x, axes, elements<std::uint8_t>(y), y.size()); }
void all(const Tensor& x, unsigned axes, Tensor& y) { fold<And>(x, axes, elements<std::uint8_t>(y), y.size()); }

}  // namespace tapedeck::kernels
