// max, min, any, all, argmax and argmin, and how equal extremes share a gradient. The first four are folds
// (fold_axes.h), any and all of the bytes 0 and 1. argmax and argmin return the first position of the
// extreme, or of a NaN; threads split their results.
#include <algorithm>
#include <memory>

#include "core/bytes.h"
#include "core/visit.h"
#include "kernels/reduce/fold_axes.h"
#include "kernels/reduce/reduce.h"

namespace tapedeck::kernels {
namespace {

template <class Best, class T> std::int64_t arg_row(const T* x, std::int64_t n) {
  const T best = fold_block<Best>(x, n);
  const bool is_nan = best != best;   // xsimd's != is false for NaN
  std::int64_t i = 0;
  for (; i + kWidth<T> <= n; i += kWidth<T>)
    if (const auto v = Batch<T>::load_unaligned(x + i); xsimd::any(is_nan ? ~(v == v) : v == Batch<T>(best)))
      break;
  return std::find_if(x + i, x + n, [&](T v) { return is_nan ? v != v : v == best; }) - x;
}

template <class Best, class T>
void arg_columns(const T* x, std::int64_t n, std::int64_t width, std::int64_t* y) {
  const auto best = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(width));
  std::copy_n(x, width, best.get());
  std::fill_n(y, width, 0);
  for (std::int64_t r = 1; r < n; ++r)
    for (std::int64_t j = 0; j < width; ++j)
      if (T v = x[r * width + j], &b = best[static_cast<std::size_t>(j)];
          Best::better(v, b) || (v != v && b == b)) {
        b = v;
        y[j] = r;
      }
}

template <class Best> void extreme(const Tensor& x, unsigned axes, Tensor& y) {
  rounding_once(y, [&](const Results& best) {
    visit(best.dtype, [&](auto one) {
      using T = decltype(one);
      if constexpr (!std::is_same_v<T, bool>) fold<Best>(x, axes, best.as<T>(), best.size);
    });
  });
}

template <class Best> void arg_extreme(const Tensor& x, int axis, Tensor& y) {
  if (y.size() == 0) return;
  std::int64_t inner = 1;
  for (int d = x.ndim() + axis + 1; d < x.ndim(); ++d)
    inner *= x.shape()[d];
  const std::int64_t n = x.shape()[x.ndim() + axis];
  std::int64_t* out = elements<std::int64_t>(y);
  visit(x.dtype(), [&](auto one) {
    using T = decltype(one);
    if constexpr (!std::is_same_v<T, bool>) {
      const T* in = elements<T>(x);
      for_each(y.size() / inner, n * inner, [&](std::int64_t i) {
        if (inner == 1)
          out[i] = arg_row<Best>(in + i * n, n);
        else
          arg_columns<Best>(in + i * n * inner, n, inner, out + i * inner);
      });
    }
  });
}

// Computes each element's share of the gradient of the extreme of its group: the elements that are reduced to
// one result. x is split into rows along the innermost run of merged axes (AxisRuns): a row belongs to one
// group, or has one element of each of n groups.
template <class T> class Shares {
 public:
  Shares(const Tensor& x, const Tensor& best, unsigned axes, Tensor& share)
      : x_(elements<T>(x)),
        best_(elements<T>(best)),
        share_(elements<T>(share)),
        runs_(x.shape(), axes),
        counts_(std::make_unique<T[]>(static_cast<std::size_t>(best.size()))) {
    if (runs_.count == 0) runs_.list[static_cast<std::size_t>(runs_.count++)] = {1, false};
    Offsets step{x.size(), best.size()};
    for (int r = 0; r < runs_.count; ++r) {
      const auto [n, folded] = run_at(r);
      step = {step.x / n, folded ? step.best : step.best / n};
      steps_[static_cast<std::size_t>(r)] = {step.x, folded ? 0 : step.best};
    }
  }

  void run() {
    const auto [n, folded] = run_at(0);
    const std::int64_t size = steps_[0].x;
    if (runs_.count == 2 && run_at(1).folded)   // a row for each group
      return for_each(n, size, [&](std::int64_t i) {
        count({i * size, i}, size, true);
        divide({i * size, i}, size, true);
      });
    if (runs_.count > 1 && !folded)   // the elements that were counted are still in the cache
      return for_each(n, size, [&](std::int64_t i) {
        for_rows(0, i, i + 1, {}, &Shares::count);
        for_rows(0, i, i + 1, {}, &Shares::divide);
      });
    for_rows(0, 0, n, {}, &Shares::count);
    parallel_for(n, cut_of(kFoldCut, size),
                 [&](std::int64_t begin, std::int64_t end) { for_rows(0, begin, end, {}, &Shares::divide); });
  }

 private:
  struct Offsets {
    std::int64_t x = 0, best = 0;
  };
  using Row = void (Shares::*)(Offsets at, std::int64_t n, bool folded);

  const Run& run_at(int r) const { return runs_.list[static_cast<std::size_t>(r)]; }

  // Calls `row` for the rows of elements [begin, end) of run r.
  void for_rows(int r, std::int64_t begin, std::int64_t end, Offsets at, Row row) {
    const auto [x, best] = steps_[static_cast<std::size_t>(r)];
    if (r + 1 == runs_.count)
      return (this->*row)({at.x + begin * x, at.best + begin * best}, end - begin, run_at(r).folded);
    for (std::int64_t i = begin; i < end; ++i)
      for_rows(r + 1, 0, run_at(r + 1).n, {at.x + i * x, at.best + i * best}, row);
  }

  void count(Offsets at, std::int64_t n, bool folded) {
    const T *x = x_ + at.x, *best = best_ + at.best;
    T* const counts = counts_.get() + at.best;
    if (folded)
      *counts += static_cast<T>(equal_to(*best, x, n));
    else
      for (std::int64_t i = 0; i < n; ++i)
        counts[i] += x[i] == best[i] ? T(1) : T(0);
  }
  // Counts in integers of the size of T, which fill the same vectors.
  static std::int64_t equal_to(T value, const T* x, std::int64_t n) {
    constexpr std::int64_t piece = 1 << 20;
    std::int64_t all = 0;
    for (std::int64_t begin = 0; begin < n; begin += piece) {
      std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t> count = 0;
      for (std::int64_t i = begin; i < std::min(n, begin + piece); ++i)
        count += x[i] == value;
      all += count;
    }
    return all;
  }
  // If the extreme is NaN, no element equals it, and all shares are 0 / 0.
  void divide(Offsets at, std::int64_t n, bool folded) {
    const T *x = x_ + at.x, *best = best_ + at.best, *counts = counts_.get() + at.best;
    T* const share = share_ + at.x;
    const T first = *best, inverse = 1 / *counts;
    if (folded)
      for (std::int64_t i = 0; i < n; ++i)
        share[i] = inverse * (x[i] == first ? T(1) : T(0));
    else
      for (std::int64_t i = 0; i < n; ++i)
        share[i] = 1 / counts[i] * (x[i] == best[i] ? T(1) : T(0));
  }

  const T *x_, *best_;
  T* share_;
  AxisRuns runs_;
  std::array<Offsets, Shape::kMaxRank> steps_;
  std::unique_ptr<T[]> counts_;   // by group
};

}   // namespace

void max(const Tensor& x, unsigned axes, Tensor& y) { extreme<Max>(x, axes, y); }
void min(const Tensor& x, unsigned axes, Tensor& y) { extreme<Min>(x, axes, y); }
void any(const Tensor& x, unsigned axes, Tensor& y) {
  fold<Max>(x, axes, elements<std::uint8_t>(y), y.size());
}
void all(const Tensor& x, unsigned axes, Tensor& y) {
  auto* const out = elements<std::uint8_t>(y);
  if (x.size() == 0) return static_cast<void>(std::fill_n(out, y.size(), std::uint8_t{1}));
  fold<Min>(x, axes, out, y.size());
}
void share_of_extreme(const Tensor& x, const Tensor& best, unsigned axes, Tensor& share) {
  if (x.size() == 0) return;
  visit_floating(x.dtype(), [&]<class T>(T) { Shares<T>(x, best, axes, share).run(); });
}
void argmax(const Tensor& x, int axis, Tensor& y) { arg_extreme<Max>(x, axis, y); }
void argmin(const Tensor& x, int axis, Tensor& y) { arg_extreme<Min>(x, axis, y); }

}   // namespace tapedeck::kernels
