// Segment reductions. Each segment is reduced by one thread: contiguous numbers by fold_block, rows in their
// order. Floating-point results are kept in registers, for a strip at a time: one or eight vectors of
// columns.
#include "kernels/reduce/segment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/bytes.h"
#include "core/cast.h"
#include "core/convert.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "core/visit.h"
#include "kernels/layout/copy.h"
#include "kernels/layout/index_lists.h"
#include "kernels/reduce/fold.h"
#include "kernels/simd/lanes.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kSegmentCut = {1 << 15, 1 << 17};   // of elements

// The first row of each segment, and the end of the last one. Segment j begins after the last row with a
// smaller id.
CachedVector<std::int64_t> segment_begins(const Tensor& ids, std::int64_t count) {
  CachedVector<std::int64_t> begins(static_cast<std::size_t>(count + 1));
  visit_indices(ids, [&](const auto list) {
    for (std::size_t k = 0; k < list.size(); ++k)
      begins[static_cast<std::size_t>(list[k]) + 1] = static_cast<std::int64_t>(k) + 1;
  });
  for (std::size_t j = 1; j < begins.size(); ++j)
    begins[j] = std::max(begins[j], begins[j - 1]);
  return begins;
}

// Reduces a strip of a segment of n rows: `vectors` vectors of columns from `first` on. row(k) points at the
// k-th row.
template <class Fold, int vectors, class T, class Row>
void fold_strip(const Row& row, std::int64_t n, std::int64_t first, T* y) {
  constexpr std::int64_t w = kWidth<T>;
  Batch<T> total[vectors];
  for (int i = 0; i < vectors; ++i)
    total[i] = load<Batch<T>>(row(0) + first + i * w);
  for (std::int64_t k = 1; k < n; ++k) {
    const T* x = row(k) + first;
    for (int i = 0; i < vectors; ++i)
      total[i] = Fold{}(total[i], load<Batch<T>>(x + i * w));
  }
  for (int i = 0; i < vectors; ++i)
    store(total[i], y + first + i * w);
}

template <class Fold, class T, class Row>
void fold_group(const Row& row, std::int64_t n, std::int64_t after, T* y) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr std::int64_t w = kWidth<T>;
    if (after >= w) {
      std::int64_t a = 0;
      for (; a + 8 * w <= after; a += 8 * w)
        fold_strip<Fold, 8>(row, n, a, y);
      for (; a + w <= after; a += w)
        fold_strip<Fold, 1>(row, n, a, y);
      if (a < after) fold_strip<Fold, 1>(row, n, after - w, y);   // overlaps columns already done
      return;
    }
  }
  using U = Wrapping<Fold, T>;
  std::copy_n(row(0), after, y);
  for (std::int64_t k = 1; k < n; ++k) {
    const T* x = row(k);
    for (std::int64_t a = 0; a < after; ++a)
      y[a] = static_cast<T>(Fold{}(static_cast<U>(y[a]), static_cast<U>(x[a])));
  }
}

// The index of the k-th row in its slab of x: rows[k], or k without `rows`. The dtype of `rows` is checked
// for each row, so that the loops are not compiled for each dtype.
class RowNumbers {
 public:
  explicit RowNumbers(const Tensor* rows) {
    if (!rows) return;
    if (rows->dtype() == DType::i32) {
      narrow_ = elements<std::int32_t>(*rows);
    } else {
      rows_ = rows->dtype() == DType::i64 ? *rows : to_i64(*rows);
      wide_ = elements<std::int64_t>(rows_);
    }
  }
  std::int64_t operator()(std::int64_t k) const { return narrow_ ? narrow_[k] : wide_ ? wide_[k] : k; }

 private:
  Tensor rows_;
  const std::int32_t* narrow_ = nullptr;
  const std::int64_t* wide_ = nullptr;
};

template <class Fold, class T> void fold_all(T empty, Divisor divisor, const Tensor& x, const Tensor* rows,
                                             const Tensor& ids, const AxisView& view, Tensor& y) {
  const CachedVector<std::int64_t> begins = segment_begins(ids, view.extent);
  const std::int64_t after = view.after, count = view.extent, slab = x.size() / view.before;
  const RowNumbers number(rows);
  const auto run = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      const std::int64_t begin = begins[static_cast<std::size_t>(i % count)],
                         n = begins[static_cast<std::size_t>(i % count + 1)] - begin;
      const T* in = elements<T>(x) + i / count * slab;
      T* out = elements<T>(y) + i * after;
      if (n == 0)
        std::fill_n(out, after, empty);
      else if (std::is_floating_point_v<T> && after == 1 && !rows)
        *out = fold_block<Fold>(in + begin, n);
      else
        fold_group<Fold>([&](std::int64_t k) { return in + number(begin + k) * after; }, n, after, out);
      if constexpr (std::is_floating_point_v<T> || ComplexNumber<T>) {
        if (divisor == Divisor::one || n < 2) continue;
        const T by = convert<T>(divisor == Divisor::count ? static_cast<double>(n)
                                                          : std::sqrt(static_cast<double>(n)));
        for (std::int64_t a = 0; a < after; ++a)
          out[a] /= by;
      }
    }
  };
  parallel_for(view.before * count, cut_of(kSegmentCut, std::max(after, ids.size() / count * after)), run);
}

// Computes the shares for a slab of x, whose rows begin at `in` and `share`; counts has an element for each
// element of best.
template <class T, class Ids>
void share_slab(const T* in, const Ids& ids, std::int64_t after, const T* best, T* counts, T* share) {
  for (std::size_t k = 0; k < ids.size(); ++k) {
    if (ids[k] < 0) continue;
    const T *const x = in + static_cast<std::int64_t>(k) * after, *const y = best + ids[k] * after;
    T* const count = counts + ids[k] * after;
    for (std::int64_t a = 0; a < after; ++a)
      count[a] += x[a] == y[a] ? T(1) : T(0);
  }
  for (std::size_t k = 0; k < ids.size(); ++k) {
    const std::int64_t row = static_cast<std::int64_t>(k) * after, group = std::max<std::int64_t>(ids[k], 0);
    const T *const x = in + row, *const y = best + group * after, *const count = counts + group * after;
    for (std::int64_t a = 0; a < after; ++a)
      share[row + a] = ids[k] < 0 ? T(0) : 1 / count[a] * (x[a] == y[a] ? T(1) : T(0));   // 0 / 0 for NaN
  }
}

}   // namespace

void share_of_group_extreme(const Tensor& x, const Tensor& ids, const Tensor& best, const AxisView& view,
                            Tensor& share) {
  if (x.size() == 0) return;
  if (best.size() == 0) return clear(share);   // all ids are negative
  const std::int64_t slab = x.size() / view.before, groups = best.size() / view.before;
  visit_floating(x.dtype(), [&]<class T>(T) {
    visit_indices(ids, [&](const auto list) {
      parallel_for(view.before, cut_of(kSegmentCut, slab), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t b = begin; b < end; ++b) {
          const auto counts = std::make_unique<T[]>(static_cast<std::size_t>(groups));
          share_slab(elements<T>(x) + b * slab, list, view.after, elements<T>(best) + b * groups,
                     counts.get(), elements<T>(share) + b * slab);
        }
      });
    });
  });
}

namespace {

// The highest or lowest finite number of the dtype, if T is the type that ops compute it in; otherwise of T.
template <class T> T limit_of(DType stored, bool highest) {
  if constexpr (std::is_same_v<T, float>) {
    if (is_half(stored)) return (highest ? 1 : -1) * (stored == DType::f16 ? 65504.0F : 0x1.fep127F);
  }
  if constexpr (std::is_same_v<T, std::int64_t>) {
    switch (stored) {
      case DType::i16:
        return highest ? 0x7fff : -0x8000;
      case DType::u16:
        return highest ? 0xffff : 0;
      case DType::u32:
        return highest ? 0xffffffff : 0;
      case DType::u64:
        return highest ? -1 : 0;   // wraps around to 2⁶⁴ - 1
      default:
        break;
    }
  }
  return highest ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
}

template <class Fold>
void begin_fold(EmptyGroup empty, DType stored, const Tensor& ids, const AxisView& view, Tensor& y) {
  const std::vector<std::int64_t> rows = count_each(ids, view.extent);
  const auto begin = [&]<class T>(T identity, T none) {
    T* out = elements<T>(y);
    for (std::int64_t b = 0; b < view.before; ++b)
      for (std::int64_t j = 0; j < view.extent; ++j, out += view.after)
        std::fill_n(out, view.after, rows[static_cast<std::size_t>(j)] ? identity : none);
  };
  visit_any(y.dtype(), [&]<class T>(T) {
    if constexpr (ComplexNumber<T>) {
      if constexpr (!kIsExtreme<Fold>)
        begin(Fold::template identity<T>, empty == EmptyGroup::zero ? T(0) : T(1));
    } else if constexpr (!std::is_same_v<T, bool>) {
      const bool is_limit = empty == EmptyGroup::highest || empty == EmptyGroup::lowest;
      begin(Fold::template identity<T>,
            is_limit ? limit_of<T>(stored, empty == EmptyGroup::highest) : T(empty == EmptyGroup::one));
    }
  });
}

}   // namespace

void begin_groups(ScatterReduction fold, EmptyGroup empty, DType stored, const Tensor& ids,
                  const AxisView& view, Tensor& y) {
  switch (fold) {
    case ScatterReduction::product:
      return begin_fold<Product>(empty, stored, ids, view, y);
    case ScatterReduction::max:
      return begin_fold<Max>(empty, stored, ids, view, y);
    case ScatterReduction::min:
      return begin_fold<Min>(empty, stored, ids, view, y);
    default:
      return begin_fold<Sum>(empty, stored, ids, view, y);
  }
}

void group_divisors(const Tensor& ids, Divisor divisor, Tensor& y) {
  const std::vector<std::int64_t> rows = count_each(ids, y.size());
  std::vector<double> divisors;
  for (const std::int64_t n : rows) {
    const double most = std::max(static_cast<double>(n), 1.0);
    divisors.push_back(divisor == Divisor::count ? most : std::sqrt(most));
  }
  convert_elements(DType::f64, divisors.data(), y.dtype(), y.raw(), y.size());
}

void fold_segments(SegmentFold fold, Divisor divisor, const Tensor& x, const Tensor* rows, const Tensor& ids,
                   const AxisView& view, Tensor& y) {
  if (y.size() == 0) return;
  visit_any(y.dtype(), [&]<class T>(T) {
    if constexpr (ComplexNumber<T>) {
      if (fold == SegmentFold::sum) return fold_all<Sum>(T(0), divisor, x, rows, ids, view, y);
      if (fold == SegmentFold::product) return fold_all<Product>(T(1), divisor, x, rows, ids, view, y);
    } else if constexpr (!std::is_same_v<T, bool>) {
      switch (fold) {
        case SegmentFold::sum:
          return fold_all<Sum>(T(0), divisor, x, rows, ids, view, y);
        case SegmentFold::product:
          return fold_all<Product>(T(1), divisor, x, rows, ids, view, y);
        case SegmentFold::max:
          return fold_all<Max>(T(0), divisor, x, rows, ids, view, y);
        case SegmentFold::min:
          return fold_all<Min>(T(0), divisor, x, rows, ids, view, y);
      }
    }
    throw_not_taken(y.dtype());
  });
}

}   // namespace tapedeck::kernels
