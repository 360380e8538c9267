// Copies elements between a strided view of one tensor and another, dense (contiguous) tensor. Splits a view
// into an inner matrix and outer loops, and picks the fastest copy for the matrix: contiguous runs, fills,
// repeats, transpositions, or single elements. Threads split the matrices and pieces of large ones.
#include "kernels/layout/copy.h"

#include <algorithm>
#include <cstring>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/layout/transpose.h"
#include "kernels/simd/short_copy.h"

namespace tapedeck::kernels {
namespace {

constexpr std::int64_t kCopyGrain = 1 << 16;   // least elements per thread
constexpr std::int64_t kBand = 64;             // rows of a transposition per block
constexpr std::int64_t kNear = 1 << 14;        // bytes that stay in the L1 cache
constexpr std::int64_t kFew = 32;   // fewer broadcast columns are written faster by a transposition

// One loop: its extent, and its strides in the viewed tensor and in the dense one.
struct Loop {
  std::int64_t extent, step, dense;
};

// A view as nested loops. The inner two are a matrix with rows that are contiguous in the dense tensor;
// `outer` are the loops around it.
struct Loops {
  Loop outer[2 * Shape::kMaxRank], rows{1, 0, 0}, columns{1, 1, 1};
  std::size_t ndim = 0;

  // Chooses the axis for `rows`. If rows are not contiguous in the view, prefers an axis of stride 1, so that
  // the matrix can be transposed. If they are, prefers an axis of smaller extent and stride, so that writes
  // stay close together.
  explicit Loops(const StridedView& p) {
    std::size_t n = p.ndim(), chosen = n;
    if (n) columns = {p[n - 1].extent, p[n - 1].stride, 1};
    if (n > 1) chosen = n - 2;
    for (std::size_t d = 0; d + 1 < n; ++d)
      if (columns.step != 1
              ? p[d].stride == 1
              : p[d].stride > 0 && p[d].stride < p[chosen].stride && p[d].extent < p[chosen].extent)
        chosen = d;
    std::int64_t dense = columns.extent;
    ndim = n > 2 ? n - 2 : 0;
    std::size_t slot = ndim;
    for (std::size_t d = n - 1; n > 1 && d-- > 0; dense *= p[d].extent)
      (d == chosen ? rows : outer[--slot]) = {p[d].extent, p[d].stride, dense};
  }

  std::int64_t count() const {
    std::int64_t n = 1;
    for (std::size_t d = 0; d < ndim; ++d)
      n *= outer[d].extent;
    return n;
  }
  // Calls f(offset in the view, offset in the dense tensor) for iterations [begin, end) of the outer loops.
  template <class F> void each(std::int64_t begin, std::int64_t end, F f) const {
    std::int64_t index[2 * Shape::kMaxRank], offset = 0, dense = 0;
    const auto step = [&](std::size_t d, std::int64_t by) {
      index[d] += by;
      offset += by * outer[d].step;
      dense += by * outer[d].dense;
    };
    std::int64_t rest = begin;
    for (std::size_t d = ndim; d-- > 0; rest /= outer[d].extent) {
      index[d] = 0;
      step(d, rest % outer[d].extent);
    }
    for (std::int64_t position = begin; position < end; ++position) {
      f(offset, dense);
      for (std::size_t d = ndim; d-- > 0;) {
        step(d, 1);
        if (index[d] < outer[d].extent) break;
        step(d, -outer[d].extent);
      }
    }
  }
};

// Calls f(offset in the view, offset in the dense tensor, rows, columns) for each matrix, in parallel. Large
// matrices are cut into pieces, of whole bands of `band` rows if they have as many.
template <class F> void each_matrix(const Loops& w, std::int64_t band, F f) {
  const std::int64_t rows = w.rows.extent, columns = w.columns.extent, matrices = w.count();
  if (rows <= kCopyGrain / columns)
    return parallel_for(matrices, kCopyGrain / (rows * columns), [&](std::int64_t begin, std::int64_t end) {
      w.each(begin, end, [&](std::int64_t offset, std::int64_t dense) { f(offset, dense, rows, columns); });
    });
  const std::int64_t width = std::min(columns, kCopyGrain),
                     height = std::min(rows, std::max(std::int64_t{1}, kCopyGrain / width / band) * band);
  const std::int64_t across = (columns + width - 1) / width, down = (rows + height - 1) / height;
  w.each(0, matrices, [&](std::int64_t offset, std::int64_t dense) {
    parallel_for(across * down, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t piece = begin; piece < end; ++piece) {
        const std::int64_t i = piece / across * height, j = piece % across * width;
        f(offset + i * w.rows.step + j * w.columns.step, dense + i * w.rows.dense + j,
          std::min(height, rows - i), std::min(width, columns - j));
      }
    });
  });
}

// Copies runs that are contiguous on both sides. Strides are in bytes.
void copy_runs(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
               std::int64_t count, std::int64_t bytes) {
  if (count == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  with_copy_of(bytes, [&](auto copy) {
    for (std::int64_t i = 0; i < count; ++i)
      copy(from + i * from_step, to + i * to_step);
  });
}
template <class T> void copy_runs(const T* from, std::int64_t from_step, T* to, std::int64_t to_step,
                                  std::int64_t rows, std::int64_t n) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  copy_runs(reinterpret_cast<const std::byte*>(from), from_step * size, reinterpret_cast<std::byte*>(to),
            to_step * size, rows, n * size);
}

// Copies a run in reverse; `from` points at its last element.
template <class T> void reverse_run(const T* from, T* to, std::int64_t n) {
  constexpr std::size_t bytes = 32, width = bytes / sizeof(T);
  using Part [[gnu::vector_size(bytes)]] = T;
  std::int64_t i = 0;
  for (; i + static_cast<std::int64_t>(width) <= n; i += static_cast<std::int64_t>(width)) {
    Part part;
    std::memcpy(&part, from - i - static_cast<std::int64_t>(width - 1), bytes);
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      part = __builtin_shufflevector(part, part, (width - 1 - k)...);
    }
    (std::make_index_sequence<width>());
    std::memcpy(to + i, &part, bytes);
  }
  for (; i < n; ++i)
    to[i] = from[-i];
}

// Transposes a matrix that is contiguous down its columns, in blocks that stay in the L1 cache.
template <class T> void transpose_near(const T* from, std::int64_t from_step, T* to, std::int64_t to_step,
                                       std::int64_t rows, std::int64_t columns) {
  const std::int64_t near =
      std::max(kMaxTile<T>, kNear / (std::min(kBand, rows) * static_cast<std::int64_t>(sizeof(T))));
  for (std::int64_t i = 0; i < rows; i += kBand)
    for (std::int64_t j = 0; j < columns; j += near)
      transpose(from + i + j * from_step, from_step, to + i * to_step + j, to_step, std::min(kBand, rows - i),
                std::min(near, columns - j));
}

template <class T> void gather(const Loops& w, const T* source, T* target) {
  const std::int64_t down = w.rows.step, across = w.columns.step, to_step = w.rows.dense;
  // A few equal (broadcast) columns are also a transposition, of equal rows.
  const bool transposes = down == 1 && (across != 0 || w.columns.extent < kFew);
  each_matrix(w, transposes ? kBand : 1,
              [&](std::int64_t offset, std::int64_t dense, std::int64_t rows, std::int64_t columns) {
                const T* from = source + offset;
                T* to = target + dense;
                if (across == 1 && down == 0 && columns == to_step)
                  return repeat_run(from, to, rows, columns);
                if (across == 1) return copy_runs(from, down, to, to_step, rows, columns);
                if (transposes) return transpose_near(from, across, to, to_step, rows, columns);
                for (; rows > 0; --rows, from += down, to += to_step) {
                  if (across == 0)
                    std::fill_n(to, columns, *from);
                  else if (across == -1)
                    reverse_run(from, to, columns);
                  else
                    for (std::int64_t j = 0; j < columns; ++j)
                      to[j] = from[j * across];
                }
              });
}

template <class T> void scatter(const Loops& w, const T* source, T* target) {
  const std::int64_t down = w.rows.step, across = w.columns.step, from_step = w.rows.dense;
  each_matrix(w, 1, [&](std::int64_t offset, std::int64_t dense, std::int64_t rows, std::int64_t columns) {
    const T* from = source + dense;
    T* to = target + offset;
    if (across == 1) return copy_runs(from, from_step, to, down, rows, columns);
    for (; rows > 0; --rows, from += from_step, to += down)
      for (std::int64_t j = 0; j < columns; ++j)
        to[j * across] = from[j];
  });
}

template <class T> void add_run(const T* from, T* to, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j)
    to[j] = static_cast<T>(to[j] + from[j]);
}

template <class T> void scatter_sum(const Loops& w, const T* source, T* target) {
  const std::int64_t down = w.rows.step, across = w.columns.step, from_step = w.rows.dense;
  each_matrix(w, 1, [&](std::int64_t offset, std::int64_t dense, std::int64_t rows, std::int64_t columns) {
    const T* from = source + dense;
    T* to = target + offset;
    for (; rows > 0; --rows, from += from_step, to += down) {
      if (across == 1)
        add_run(from, to, columns);
      else
        for (std::int64_t j = 0; j < columns; ++j)
          to[j * across] = static_cast<T>(to[j * across] + from[j]);
    }
  });
}

}   // namespace

void copy_from(const Tensor& x, const StridedView& view, Tensor& y) {
  if (y.size() == 0) return;
  visit_size(y.dtype(), [&](auto t) {
    using T = decltype(t);
    gather(Loops(view), elements<T>(x) + view.offset(), elements<T>(y));
  });
}

void copy_to(const Tensor& x, Tensor& y, const StridedView& view) {
  if (x.size() == 0) return;
  visit_size(y.dtype(), [&](auto t) {
    using T = decltype(t);
    scatter(Loops(view), elements<T>(x), elements<T>(y) + view.offset());
  });
}

void add_to(const Tensor& x, Tensor& y, const StridedView& view) {
  if (x.size() == 0) return;
  visit_any(y.dtype(), [&](auto t) {
    using T = decltype(t);
    if constexpr (!std::is_same_v<T, bool>)
      scatter_sum(Loops(view), elements<T>(x), elements<T>(y) + view.offset());
  });
}

void copy_runs(const Tensor& x, Runs from, Tensor& y, Runs to, std::int64_t count, std::int64_t n) {
  if (y.size() == 0 || count == 0 || n == 0) return;
  const std::int64_t size = size_of(y.dtype()), bytes = n * size;
  const auto copy = [&](std::int64_t row, std::int64_t rows, std::int64_t begin, std::int64_t some) {
    copy_runs(x.raw() + (from.first + row * from.step) * size + begin, from.step * size,
              y.raw() + (to.first + row * to.step) * size + begin, to.step * size, rows, some);
  };
  constexpr std::int64_t grain = kCopyGrain * 8;
  if (count == 1)
    return parallel_for(bytes, grain,
                        [&](std::int64_t begin, std::int64_t end) { copy(0, 1, begin, end - begin); });
  parallel_for(count, std::max(std::int64_t{1}, grain / bytes),
               [&](std::int64_t begin, std::int64_t end) { copy(begin, end - begin, 0, bytes); });
}

namespace {

void clear_bytes(std::byte* y, std::int64_t n) {
  parallel_for(n, kCopyGrain * 8, [&](std::int64_t begin, std::int64_t end) {
    std::memset(y + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

}   // namespace

void clear(Tensor& y) { clear_bytes(y.raw(), y.nbytes()); }

void clear_around(Tensor& y, const StridedView& view, std::int64_t n) {
  if (n == 0 || !view.contiguous()) return clear(y);
  const std::int64_t size = size_of(y.dtype()), begin = view.offset() * size, end = begin + n * size;
  clear_bytes(y.raw(), begin);
  clear_bytes(y.raw() + end, y.nbytes() - end);
}

}   // namespace tapedeck::kernels
