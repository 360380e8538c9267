// Splits a variable and its gradient into rows. Dense: pieces. Sparse: the rows that the gradient names, each
// with the sum of its values, and the rows between them.
#include "optim/update_rows.h"

#include <algorithm>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"

namespace tapedeck {
namespace {

constexpr Cut kCut = {1 << 15, 1 << 16};   // elements

template <class T>
UpdateRow<T> part_of(const UpdateRow<T>& row, std::int64_t first, std::int64_t n, const T* g) {
  UpdateRow<T> part{n, row.x + first, {}, g, row.c, row.step};
  for (std::size_t k = 0; k < kMaxSlots; ++k)
    if (row.slots[k]) part.slots[k] = row.slots[k] + first;
  return part;
}

// A sparse gradient with its variable; `whole` is all rows.
template <class T> class NamedRows {
 public:
  NamedRows(const UpdateRow<T>& whole, const Tensor& x, const StepGradient& g)
      : whole_(whole), order_(*g.order), values_(elements<T>(g.values)), extent_(x.shape()[0]) {
    for (int d = 1; d < x.ndim(); ++d)
      width_ *= x.shape()[d];
  }

  // Calls f(row, piece) for the named rows alone, or for all.
  template <class F> void each(const F& f, bool all) const {
    if (width_ == 0) return;
    const std::int64_t n = all ? extent_ : count(), piece = cut_of(kCut, width_).piece_of(n);
    parallel_for(n, piece, [&](std::int64_t begin, std::int64_t end) {
      const auto part = [&f, at = begin / piece](const UpdateRow<T>& row) { f(row, at); };
      if (all)
        each_between(begin, end, part);
      else
        for (std::int64_t r = begin; r < end; ++r)
          row(r, part);
    });
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(order_.rows.size()); }

  template <class F> void each_between(std::int64_t begin, std::int64_t end, const F& f) const {
    const std::int64_t *rows = order_.rows.data(), *rows_end = rows + count();
    const auto rest_until = [&](std::int64_t done, std::int64_t until) {
      if (done < until) f(part_of<T>(whole_, done * width_, (until - done) * width_, nullptr));
    };
    std::int64_t done = begin;
    for (const std::int64_t* r = std::lower_bound(rows, rows_end, begin); r != rows_end && *r < end; ++r) {
      rest_until(done, *r);
      row(r - rows, f);
      done = *r + 1;
    }
    rest_until(done, end);
  }

  template <class F> void row(std::int64_t r, const F& f) const {
    const std::int64_t first = order_.rows[static_cast<std::size_t>(r)] * width_;
    const std::int64_t* starts = order_.starts.data() + r;
    const std::int64_t *place = order_.places.data() + starts[0], *end = order_.places.data() + starts[1];
    if (end - place == 1) return f(part_of(whole_, first, width_, values_ + *place * width_));
    constexpr std::int64_t most = 1024;   // the most elements summed at a time
    alignas(64) T sum[most];
    for (std::int64_t i = 0; i < width_; i += most) {
      const std::int64_t n = std::min(most, width_ - i);
      const T* values = values_ + i;
      std::copy_n(values + *place * width_, n, sum);
      for (const std::int64_t* p = place + 1; p != end; ++p)
        for (std::int64_t k = 0; k < n; ++k)
          sum[k] += values[*p * width_ + k];
      f(part_of<T>(whole_, first + i, n, sum));
    }
  }

  const UpdateRow<T>& whole_;
  const kernels::RowOrder& order_;
  const T* values_;
  std::int64_t extent_, width_ = 1;
};

// Calls f(row, piece) for all rows that a step changes.
template <class T, class F>
void each_row(Tensor& x, std::span<Tensor> slots, const StepGradient& g, const Step& step, const F& f) {
  T c[kMaxCoefficients];
  for (std::size_t k = 0; k < kMaxCoefficients; ++k)
    c[k] = static_cast<T>(step.c[k]);
  UpdateRow<T> whole{x.size(), elements<T>(x), {}, nullptr, c, &step};
  for (std::size_t k = 0; k < slots.size(); ++k)
    whole.slots[k] = slots[k].defined() ? elements<T>(slots[k]) : nullptr;
  if (g.order) return NamedRows<T>(whole, x, g).each(f, static_cast<bool>(step.others));

  const T* values = elements<T>(g.values);
  const std::int64_t piece = kCut.piece_of(whole.n);
  parallel_for(whole.n, piece, [&](std::int64_t begin, std::int64_t end) {
    f(part_of(whole, begin, end - begin, values + begin), begin / piece);
  });
}

template <class T, class Functions> auto of_type(const Functions& f) {
  if constexpr (std::is_same_v<T, float>)
    return f.f32;
  else
    return f.f64;
}

}   // namespace

void update_rows(Tensor& x, std::span<Tensor> slots, const StepGradient& g, const Step& step) {
  visit_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto rows = of_type<T>(step.rows), others = of_type<T>(step.others);
    each_row<T>(x, slots, g, step,
                [=](const UpdateRow<T>& row, std::int64_t) { (row.g ? rows : others)(row); });
  });
}

RowSums measure_rows(const RowMeasure& rows, Tensor& x, std::span<Tensor> slots, const StepGradient& g,
                     const Step& step) {
  RowSums parts[Cut::kMostPieces] = {}, sums = {};
  visit_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    each_row<T>(x, slots, g, step, [&, run = of_type<T>(rows)](const UpdateRow<T>& row, std::int64_t piece) {
      run(row, parts[piece]);
    });
  });
  for (const RowSums& part : parts)
    sums[0] += part[0], sums[1] += part[1];
  return sums;
}

}   // namespace tapedeck
