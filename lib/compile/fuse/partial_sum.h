// PartialSum: a sum that a group accumulates block by block, in the same order as the op or the vjp kernel.
#pragma once
#include <algorithm>

#include "compile/fuse/group_code.h"
#include "kernels/elementwise/row.h"
#include "kernels/elementwise/vjp.h"
#include "kernels/reduce/fold_axes.h"

namespace tapedeck::compiled {

/// The number of elements in one part of a sum.
inline std::int64_t part_of(const GroupCode::Sum& s) {
  return s.order == GroupCode::Order::full  ? kernels::kFoldBlock
         : s.order == GroupCode::Order::vjp ? kernels::kSumPiece
                                            : s.rows.width * s.rows.rows_of_band;
}

/// What is added begins at multiples of `step`.
template <class T> struct alignas(64) PartialSum {
  using Vector = kernels::Batch<T>;
  static constexpr std::int64_t w = kernels::kWidth<T>, step = 4 * w;

  Vector s[4], total;
  T* part;               // where the current part's sum is written
  std::int64_t size;     // the number of elements of the current part
  std::int64_t at;       // the number of its elements added so far
  std::int64_t left;     // the number of elements from its first one on
  std::int64_t column;   // the column of the next element, for sums of rows
  const GroupCode::Sum* sum;

  PartialSum(const GroupCode::Sum& sum, T* part, std::int64_t left) : part(part), left(left), sum(&sum) {
    begin_part();
    column = 0;
  }

  /// Adds n elements.
  void add(const T* x, std::int64_t n) {
    while (n > 0) {
      const std::int64_t end = std::min(size, at + n);
      if (sum->order == GroupCode::Order::full)
        fold(x, end);
      else if (sum->order == GroupCode::Order::vjp)
        gather(x, end);
      else
        add_rows(x, end);
      x += end - at, n -= end - at, at = end;
      if (at == size) part += sum->rows.width, left -= size, begin_part();
    }
  }

 private:
  void begin_part() {
    const Vector none(T(0));
    std::fill_n(s, 4, none);
    total = none;
    at = 0;
    size = std::min(part_of(*sum), left);
  }
  void close() {
    total += (s[0] + s[1]) + (s[2] + s[3]);
    std::fill_n(s, 4, Vector(T(0)));
  }
  // Adds elements [at, end) of a full sum, in the order of fold_block.
  void fold(const T* x, std::int64_t end) {
    std::int64_t i = at;
    for (; i + step <= end; i += step) {
      for (int k = 0; k < 4; ++k)
        s[k] += Vector::load_unaligned(x + (i - at) + k * w);
      if ((i + step) % kernels::kFoldPiece<T> == 0) close();
    }
    if (i == end && end < size) return;
    if (i % kernels::kFoldPiece<T> != 0) close();   // fewer than four vectors are left
    for (; i + w <= end; i += w)
      total += Vector::load_unaligned(x + (i - at));
    if (end < size) return;
    *part = size < w ? T(0) : kernels::fold_lanes<kernels::Sum>(total);
    for (; i < end; ++i)
      *part += x[i - at];
  }
  // Adds elements [at, end) in the order of a vjp's loop.
  void gather(const T* x, std::int64_t end) {
    const std::int64_t main = std::min(end, kernels::whole<T>(size));
    std::int64_t i = at;
    for (; i % step == 0 && i + step <= main; i += step)
      for (int k = 0; k < 4; ++k)
        s[k] += Vector::load_unaligned(x + (i - at) + k * w);
    for (; i < main; i += w)
      s[i / w % 4] += Vector::load_unaligned(x + (i - at));
    if (end < size) return;
    *part = T(0);
    kernels::end_sum(s, part);
    for (; i < end; ++i)
      *part += x[i - at];
  }
  // Adds elements [at, end) of a band of rows.
  void add_rows(const T* x, std::int64_t end) {
    const std::int64_t width = sum->rows.width;
    for (std::int64_t i = at; i < end;) {
      const std::int64_t n = std::min(width - column, end - i);
      T* __restrict y = part + column;
      if (i < width)
        for (std::int64_t j = 0; j < n; ++j)
          y[j] = T(0) + x[j];
      else
        for (std::int64_t j = 0; j < n; ++j)
          y[j] += x[j];
      x += n, i += n, column += n;
      if (column == width) column = 0;
    }
  }
};

}   // namespace tapedeck::compiled
