// Gathers rows along one axis by checked indices, and scatters rows with a reduction. Threads split the rows
// to gather. In a scatter, each destination row belongs to one thread, which reduces in the order of indices.
#include "kernels/layout/gather_scatter.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "core/visit.h"
#include "kernels/layout/copy.h"
#include "kernels/reduce/fold.h"
#include "kernels/simd/short_copy.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kGatherScatterCut = {1 << 15, 1 << 17};   // of elements

// Copies rows index[0], …, index[n - 1] of `from`, of `bytes` bytes each; zeros for negative indices.
template <class Index> [[gnu::noinline]] void gather_bytes(const std::byte* from, const Index* index,
                                                           std::int64_t n, std::int64_t bytes,
                                                           std::byte* to) {
  with_copy_of(bytes, [&](auto copy) {
    for (std::int64_t i = 0; i < n; ++i) {
      if (index[i] < 0)
        std::memset(to + i * bytes, 0, static_cast<std::size_t>(bytes));
      else
        copy(from + index[i] * bytes, to + i * bytes);
    }
  });
}
// Likewise for rows of `elements` elements.
template <class T, class Index>
void gather_rows(const T* from, const Index* index, std::int64_t n, std::int64_t elements, T* to) {
  if (elements == 1) {
    std::int64_t i = 0;
    const auto one = [=](std::int64_t k) { return index[k] < 0 ? T(0) : from[index[k]]; };
    for (; i + 8 <= n; i += 8) {
      const Index* const k = index + i;
      if ((k[0] | k[1] | k[2] | k[3] | k[4] | k[5] | k[6] | k[7]) < 0) {
        std::generate_n(to + i, 8, [&, j = i]() mutable { return one(j++); });
      } else {   // eight independent loads in flight
        const T some[] = {from[k[0]], from[k[1]], from[k[2]], from[k[3]],
                          from[k[4]], from[k[5]], from[k[6]], from[k[7]]};
        std::copy_n(some, 8, to + i);
      }
    }
    for (; i < n; ++i)
      to[i] = one(i);
    return;
  }
  gather_bytes(reinterpret_cast<const std::byte*>(from), index, n,
               elements * static_cast<std::int64_t>(sizeof(T)), reinterpret_cast<std::byte*>(to));
}

}   // namespace

void gather(const Tensor& x, const Tensor& indices, const AxisView& view, Tensor& y,
            const IndexBatches& batches) {
  if (y.size() == 0) return;
  const std::int64_t count = indices.size() / batches.count, extent = view.extent, after = view.after;
  visit_indices(indices, [&](const auto index) {
    visit_size(x.dtype(), [&](auto t) {
      using T = decltype(t);
      parallel_for(view.before * count, cut_of(kGatherScatterCut, after),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t row = begin, n; row < end; row += n) {   // the rows of one slab
                       const std::int64_t slab = row / count, k = row % count;
                       n = std::min(count - k, end - row);
                       gather_rows(elements<T>(x) + slab * extent * after,
                                   index.data() + slab / batches.inner % batches.count * count + k, n, after,
                                   elements<T>(y) + row * after);
                     }
                   });
    });
  });
}

namespace {

struct Difference {
  template <class T> T operator()(T a, T b) const { return static_cast<T>(a - b); }
};
struct Last {
  template <class T> T operator()(T, T b) const { return b; }
};

// Rows rows[0], …, rows[n - 1], or, if `rows` is null, 0, …, n - 1. Single elements have no `rows`.
struct Positions {
  const std::int64_t* rows;
  std::int64_t n;
};

// Reduces x[b, k, a] into y[b, index[k], a].
template <class Fold, class T> struct RowScatter {
  const T* x;
  T* y;
  const std::int64_t* index;
  std::int64_t count, after, slab;
  IndexBatches batches;

  // Reduces some rows of slab b.
  void fold(std::int64_t b, Positions some) const {
    const std::int64_t* const of_slab = index + b / batches.inner % batches.count * count;
    const T* const from = x + b * count * after;
    T* const to = y + b * slab;
    if (after == 1) {
      for (std::int64_t k = 0; k < some.n; ++k)
        if (const std::int64_t i = of_slab[k]; i >= 0) to[i] = static_cast<T>(Fold{}(to[i], from[k]));
      return;
    }
    for (std::int64_t j = 0; j < some.n; ++j) {
      const std::int64_t k = some.rows ? some.rows[j] : j, i = of_slab[k];
      if (i < 0) continue;
      const T* const row = from + k * after;
      T* const sum = to + i * after;
      for (std::int64_t a = 0; a < after; ++a)
        sum[a] = static_cast<T>(Fold{}(sum[a], row[a]));
    }
  }
};

// Indices bucketed by value into `ranges` equal parts of [0, extent): for each part, the positions of its
// indices in their original order, and where these positions begin.
struct ByRange {
  std::vector<std::int64_t> positions, begins;

  ByRange(const std::int64_t* index, std::int64_t count, std::int64_t extent, std::int64_t ranges)
      : positions(static_cast<std::size_t>(count)), begins(static_cast<std::size_t>(ranges + 1)) {
    const std::int64_t width = (extent + ranges - 1) / ranges;
    const auto range_of = [&](std::int64_t k) { return static_cast<std::size_t>(index[k] / width); };
    for (std::int64_t k = 0; k < count; ++k)
      if (index[k] >= 0) ++begins[range_of(k) + 1];
    for (std::size_t r = 1; r < begins.size(); ++r)
      begins[r] += begins[r - 1];
    std::vector<std::int64_t> next = begins;
    for (std::int64_t k = 0; k < count; ++k)
      if (index[k] >= 0) positions[static_cast<std::size_t>(next[range_of(k)]++)] = k;
  }
  Positions of(std::int64_t range) const {
    const auto r = static_cast<std::size_t>(range);
    return {positions.data() + begins[r], begins[r + 1] - begins[r]};
  }
};

// Tasks write to disjoint rows, so that equal indices are reduced in their order. A task is a slab or, if
// slabs are few and rows are long enough to pay for bucketing the indices, a range of y's rows.
template <class F> void fold_all(const F& all, std::int64_t before, std::int64_t extent) {
  constexpr std::int64_t few = 8, long_row = 16, most = 32;
  std::optional<ByRange> by_range;
  std::int64_t ranges = 1, piece = cut_of(kGatherScatterCut, all.count * all.after).piece_of(before);
  if (before < few && all.after >= long_row && all.count * all.after >= kGatherScatterCut.least &&
      all.batches.count == 1 && extent) {
    ranges = std::min(extent, most), piece = 1;
    by_range.emplace(all.index, all.count, extent, ranges);
  }
  parallel_for(before * ranges, piece, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Positions some = by_range ? by_range->of(i % ranges) : Positions{nullptr, all.count};
      all.fold(i / ranges, some);
    }
  });
}

/// Indices as i64: the given tensor, or a converted copy.
class Int64Indices {
 public:
  explicit Int64Indices(const Tensor& indices)
      : indices_(indices.dtype() == DType::i64 ? indices : to_i64(indices)) {}
  const std::int64_t* data() const { return elements<std::int64_t>(indices_); }

 private:
  const Tensor indices_;
};

// Instantiates each loop once per equivalent element type: signed integers as unsigned where overflow wraps,
// copies by size.
template <class Fold> void fold_by(const Tensor& x, const Tensor& indices, const AxisView& view, Tensor& y,
                                   const IndexBatches& batches) {
  if (x.size() == 0) return;
  const Int64Indices index(indices);
  const auto fold = [&]<class T>(T) {
    fold_all(RowScatter<Fold, T>{elements<T>(x), elements<T>(y), index.data(), indices.size() / batches.count,
                                 view.after, view.extent * view.after, batches},
             view.before, view.extent);
  };
  if constexpr (std::is_same_v<Fold, Last>) {
    visit_size(x.dtype(), fold);
  } else {
    visit_any(x.dtype(), [&]<class T>(T) {
      if constexpr (std::is_same_v<T, bool> || (ComplexNumber<T> && kIsExtreme<Fold>))
        throw_not_taken(x.dtype());
      else
        fold(Wrapping<Fold, T>());
    });
  }
}

}   // namespace

void scatter_reduce(ScatterReduction fold, const Tensor& x, const Tensor& indices, const AxisView& view,
                    Tensor& y, const IndexBatches& batches) {
  switch (fold) {
    case ScatterReduction::sum:
      return fold_by<Sum>(x, indices, view, y, batches);
    case ScatterReduction::difference:
      return fold_by<Difference>(x, indices, view, y, batches);
    case ScatterReduction::product:
      return fold_by<Product>(x, indices, view, y, batches);
    case ScatterReduction::max:
      return fold_by<Max>(x, indices, view, y, batches);
    case ScatterReduction::min:
      return fold_by<Min>(x, indices, view, y, batches);
    case ScatterReduction::last:
      return fold_by<Last>(x, indices, view, y, batches);
  }
}

void scatter_add(const Tensor& x, const Tensor& indices, const AxisView& view, Tensor& y,
                 const IndexBatches& batches) {
  clear(y);
  scatter_reduce(ScatterReduction::sum, x, indices, view, y, batches);
}

}   // namespace tapedeck::kernels
