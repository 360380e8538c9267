// Reductions over axes, in a fixed tree. Adjacent axes that are all reduced or all kept are merged into runs.
// The reduced runs are processed one at a time, the innermost first: along rows if contiguous, else down
// columns. Work is cut into pieces by sizes alone, so results do not depend on the number of threads.
#pragma once
#include <algorithm>
#include <array>
#include <memory>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "kernels/layout/transpose.h"
#include "kernels/reduce/fold.h"

namespace tapedeck::kernels {

inline constexpr Cut kFoldCut = {1 << 15, 1 << 17};   // in elements
// The elements of a block of a row. Threads reduce blocks; the results of blocks are reduced in the same way.
inline constexpr std::int64_t kFoldBlock = 1 << 15;
inline constexpr std::int64_t kFoldRows = 128;   // rows of a column block

template <class Fold, class Of = Itself, class Row> Element<Row> fold_row(Row x, std::int64_t n) {
  if (n <= kFoldBlock) return fold_block<Fold, Of>(x, n);
  const std::int64_t blocks = (n + kFoldBlock - 1) / kFoldBlock;
  const auto parts = std::make_unique_for_overwrite<Element<Row>[]>(static_cast<std::size_t>(blocks));
  parallel_for(blocks, cut_of(kFoldCut, kFoldBlock), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b)
      parts[static_cast<std::size_t>(b)] =
          fold_block<Fold, Of>(x + b * kFoldBlock, std::min(kFoldBlock, n - b * kFoldBlock));
  });
  return fold_row<Fold>(static_cast<const Element<Row>*>(parts.get()), blocks);
}

// Reduces n rows of `width` elements, `stride` apart, into y. Processes eight rows at a time, so that y is
// read and written once for all of them.
template <class Fold, class Of = Itself, class T>
void fold_rows_into(const T* x, std::int64_t n, std::int64_t stride, std::int64_t width, T* __restrict y) {
  constexpr Fold f;
  constexpr Of of;
  std::int64_t r = 0;
  for (; r + 8 <= n; r += 8) {
    const T *a = x + r * stride, *b = a + stride, *c = b + stride, *d = c + stride;
    const T *e = d + stride, *g = e + stride, *h = g + stride, *i = h + stride;
    for (std::int64_t j = 0; j < width; ++j)
      y[j] = f(y[j], f(f(f(of(a[j]), of(b[j])), f(of(c[j]), of(d[j]))),
                       f(f(of(e[j]), of(g[j])), f(of(h[j]), of(i[j])))));
  }
  for (; r < n; ++r)
    for (std::int64_t j = 0; j < width; ++j)
      y[j] = f(y[j], of(x[r * stride + j]));
}

// Reduces rows of halves, for as many columns as fill vectors. Returns the number of these columns.
template <class Fold, class Of, Batch<float> load(const Half*)>
std::int64_t fold_vectors_into(const Half* x, std::int64_t n, std::int64_t stride, std::int64_t width,
                               float* y) {
  using V = Batch<float>;
  constexpr Fold f;
  constexpr Of of;
  constexpr std::int64_t w = kWidth<float>;
  const auto each = [&](const auto& of_rows) {
    for (std::int64_t j = 0; j + w <= width; j += w) {
      const auto row = [&, p = x + j](std::int64_t k) -> V { return of(load(p + k * stride)); };
      f(V::load_unaligned(y + j), of_rows(row)).store_unaligned(y + j);
    }
  };
  std::int64_t r = 0;
  for (; r + 8 <= n; r += 8, x += 8 * stride)
    each([&](const auto& row) {
      return f(f(f(row(0), row(1)), f(row(2), row(3))), f(f(row(4), row(5)), f(row(6), row(7))));
    });
  for (; r < n; ++r, x += stride)
    each([](const auto& row) { return row(0); });
  return width / w * w;
}

template <class Fold, class Of = Itself>
void fold_rows_into(HalfRow x, std::int64_t n, std::int64_t stride, std::int64_t width, float* y) {
  const auto fold_vectors =
      x.dtype == DType::f16 ? fold_vectors_into<Fold, Of, load_f16> : fold_vectors_into<Fold, Of, load_bf16>;
  const std::int64_t done = fold_vectors(x.x, n, stride, width, y);
  x = x + done, y += done, width -= done;
  constexpr std::int64_t rows = 8, strip = kWidth<float>;
  alignas(64) float block[rows * strip];
  for (std::int64_t r = 0; r < n; r += rows)
    for (std::int64_t j = 0; j < width; j += strip) {
      const std::int64_t some = std::min(rows, n - r), count = std::min(strip, width - j);
      for (std::int64_t k = 0; k < some; ++k)
        widen(x.dtype, x.x + (r + k) * stride + j, block + k * strip, count);
      fold_rows_into<Fold, Of>(static_cast<const float*>(block), some, strip, count, y + j);
    }
}

// y[j] = the reduction of column j of a matrix of n rows.
template <class Fold, class Of = Itself, class Row>
void fold_columns(Row x, std::int64_t n, std::int64_t width, Element<Row>* y) {
  using T = Element<Row>;
  constexpr std::int64_t narrow = 64, strip = 2048;   // a strip of y stays in the L1 cache
  std::fill_n(y, width, Fold::template identity<T>);
  // Several rows of a narrow matrix form one wide row.
  if (const std::int64_t side_by_side = 2 * narrow / width; width < narrow && n >= 4 * side_by_side) {
    T wide[2 * narrow];
    const std::int64_t wide_rows = n / side_by_side, used = wide_rows * side_by_side;
    fold_columns<Fold, Of>(x, wide_rows, width * side_by_side, wide);
    fold_rows_into<Fold>(static_cast<const T*>(wide), side_by_side, width, width, y);
    return fold_rows_into<Fold, Of>(x + used * width, n - used, width, width, y);
  }
  const auto fold_piece = [&](std::int64_t piece, std::int64_t begin, std::int64_t end, T* out) {
    const std::int64_t first = piece * kFoldRows, rows = std::min(kFoldRows, n - first);
    for (std::int64_t j = begin; j < end; j += strip)
      fold_rows_into<Fold, Of>(x + first * width + j, rows, width, std::min(strip, end - j), out + j);
  };
  if (n <= kFoldRows)
    return parallel_for(width, Cut{strip, std::max(strip, kFoldCut.least / n)},
                        [&](std::int64_t begin, std::int64_t end) { fold_piece(0, begin, end, y); });
  const std::int64_t pieces = (n + kFoldRows - 1) / kFoldRows;
  const auto parts = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(pieces * width));
  std::fill_n(parts.get(), pieces * width, Fold::template identity<T>);
  parallel_for(pieces, cut_of(kFoldCut, kFoldRows * width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p)
      fold_piece(p, 0, width, parts.get() + p * width);
  });
  fold_columns<Fold>(static_cast<const T*>(parts.get()), pieces, width, y);
}

// Calls f(i) for i in [0, n), in parallel; `work` is the number of elements of a call. A few calls with much
// work run one after the other, and use threads inside f.
template <class F> void for_each(std::int64_t n, std::int64_t work, const F& f) {
  constexpr std::int64_t few = 16;
  if (n < few && work >= kFoldCut.least) {
    for (std::int64_t i = 0; i < n; ++i)
      f(i);
    return;
  }
  parallel_for(n, cut_of(kFoldCut, work), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      f(i);
  });
}

// Whether rows that are no longer than a vector are reduced side by side, each from left to right.
template <class T> inline constexpr bool kFoldsShortRows = std::is_arithmetic_v<T> && sizeof(T) >= 4;

// y[i] = the reduction of row i of n elements, for blocks of rows whose columns are vectors.
template <class Fold, class Of, class T>
void fold_short_rows(const T* x, std::int64_t rows, std::int64_t n, T* y) {
  constexpr Fold f;
  constexpr Of of;
  constexpr std::int64_t w = kWidth<T>, most = 64;
  constexpr T none = Fold::template identity<T>;
  alignas(64) T block[w * most];
  for (std::int64_t r = 0; r < rows; r += most) {
    const std::int64_t count = std::min(most, rows - r);
    transpose(x + r * n, n, block, most, n, count);
    std::int64_t i = 0;
    for (; i + w <= count; i += w) {
      Batch<T> s(none);
      for (std::int64_t k = 0; k < n; ++k)
        s = f(s, of(Batch<T>::load_aligned(block + k * most + i)));
      s.store_unaligned(y + r + i);
    }
    for (; i < count; ++i) {
      T s = none;
      for (std::int64_t k = 0; k < n; ++k)
        s = f(s, of(block[k * most + i]));
      y[r + i] = s;
    }
  }
}

template <class Fold, class Of = Itself, class Row>
void fold_middle(Row x, std::int64_t outer, std::int64_t n, std::int64_t inner, Element<Row>* y) {
  constexpr std::int64_t few = 8;   // rows that are not worth a block
  if constexpr (std::is_pointer_v<Row> && kFoldsShortRows<Element<Row>>)
    if (inner == 1 && n <= kWidth<Element<Row>> && outer >= few)
      return parallel_for(outer, cut_of(kFoldCut, n), [&](std::int64_t begin, std::int64_t end) {
        fold_short_rows<Fold, Of>(x + begin * n, end - begin, n, y + begin);
      });
  if (inner == 1)
    for_each(outer, n, [&](std::int64_t i) { y[i] = fold_row<Fold, Of>(x + i * n, n); });
  else
    for_each(outer, n * inner,
             [&](std::int64_t i) { fold_columns<Fold, Of>(x + i * n * inner, n, inner, y + i * inner); });
}

struct Run {
  std::int64_t n;
  bool folded;
};

// Adjacent axes that are all reduced, or all kept, merge into one run.
struct AxisRuns {
  std::array<Run, Shape::kMaxRank> list;
  int count = 0;

  AxisRuns(const Shape& shape, unsigned axes) {
    for (int d = 0; d < shape.ndim(); ++d) {
      const bool folded = axes >> (shape.ndim() - 1 - d) & 1;
      if (shape[d] == 1) continue;
      if (count && list[static_cast<std::size_t>(count - 1)].folded == folded)
        list[static_cast<std::size_t>(count - 1)].n *= shape[d];
      else
        list[static_cast<std::size_t>(count++)] = {shape[d], folded};
    }
  }
};

template <class Of, class T> void map_row(const T* x, std::int64_t n, T* y) {
  std::transform(x, x + n, y, Of());
}
template <class Of> void map_row(HalfRow row, std::int64_t n, float* y) {
  widen(row.dtype, row.x, y, n);
  map_row<Of>(static_cast<const float*>(y), n, y);
}

// fold_middle for rows and results of any type. row: the first element, or the address of a HalfRow.
using FoldStep = void (*)(const void* row, std::int64_t outer, std::int64_t n, std::int64_t inner, void* y);
template <class Fold, class Of, class Row>
void fold_step(const void* row, std::int64_t outer, std::int64_t n, std::int64_t inner, void* y) {
  auto* const results = static_cast<Element<Row>*>(y);
  if constexpr (std::is_pointer_v<Row>)
    fold_middle<Fold, Of>(static_cast<Row>(row), outer, n, inner, results);
  else
    fold_middle<Fold, Of>(*static_cast<const Row*>(row), outer, n, inner, results);
}
// Reduces the folded runs: the innermost by `first`, the others by `next`, from results of `size` bytes.
// Returns whether there are any.
bool fold_steps(FoldStep first, FoldStep next, const void* row, const Shape& shape, unsigned axes, void* y,
                std::int64_t size);

template <class Fold, class Of, class Row>
void fold_runs(Row x, const Shape& shape, unsigned axes, Element<Row>* y, std::int64_t y_size) {
  using T = Element<Row>;
  const void* row = &x;
  if constexpr (std::is_pointer_v<Row>) row = x;
  if (!fold_steps(fold_step<Fold, Of, Row>, fold_step<Fold, Itself, const T*>, row, shape, axes, y,
                  sizeof(T)))
    map_row<Of>(x, y_size, y);
}

/// Reduces x to y, of the same dtype. For sums and extremes of unmapped elements in f32, x may also be f16 or
/// bf16.
template <class Fold, class Of = Itself, class T>
void fold(const Tensor& x, unsigned axes, T* y, std::int64_t y_size) {
  if (x.size() == 0) {
    std::fill_n(y, y_size, Fold::template identity<T>);
    return;
  }
  if constexpr (std::is_same_v<T, float> && std::is_same_v<Of, Itself> && !std::is_same_v<Fold, Product>)
    if (is_half(x.dtype()))
      return fold_runs<Fold, Of>(HalfRow{x.dtype(), reinterpret_cast<const Half*>(x.raw())}, x.shape(), axes,
                                 y, y_size);
  fold_runs<Fold, Of>(static_cast<const T*>(elements<T>(x)), x.shape(), axes, y, y_size);
}

/// The destination of the results of a reduction.
struct Results {
  DType dtype;
  std::byte* data;
  std::int64_t size;

  explicit Results(Tensor& y) : dtype(y.dtype()), data(y.raw()), size(y.size()) {}
  Results(float* y, std::int64_t n) : dtype(DType::f32), data(reinterpret_cast<std::byte*>(y)), size(n) {}
  template <class T> T* as() const { return reinterpret_cast<T*>(data); }
};
/// Calls f(results) for y. If y is f16 or bf16, the results are f32, and are rounded to y once.
template <class F> void rounding_once(Tensor& y, const F& f) {
  if (!is_half(y.dtype())) return f(Results(y));
  constexpr std::int64_t few = 64;
  const std::int64_t n = y.size();
  alignas(64) float on_stack[few];
  CachedVector<float> more(static_cast<std::size_t>(n > few ? n : 0));
  float* const single = n > few ? more.data() : on_stack;
  f(Results(single, n));
  Half* const out = elements<Half>(y);
  parallel_for(n, kFoldCut, [&](std::int64_t begin, std::int64_t end) {
    narrow(y.dtype(), single + begin, out + begin, end - begin);
  });
}

}   // namespace tapedeck::kernels
