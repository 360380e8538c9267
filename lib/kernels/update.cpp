// Loops of the update rules. Rows of a matrix begin and end anywhere, so nothing is written beyond the last element.
// A rule is a step: step(i, g, part) moves the elements of a batch, from element i on, by their gradient g.
#include "kernels/update.h"

#include <algorithm>

#include "base/parallel.h"
#include "base/visit.h"
#include "kernels/simd.h"
#include "tensor/storage.h"

namespace tapedeck::kernels {
namespace {

constexpr std::int64_t kGrain = 1 << 15;   // elements in a piece of parallel work

// How a batch is read and written: all of it, or the first n lanes.
template <class T> struct Whole {
  Batch<T> load(const T* p) const { return Batch<T>::load_unaligned(p); }
  void store(T* p, const Batch<T>& b) const { b.store_unaligned(p); }
};
template <class T> struct First {
  std::int64_t n;
  Batch<T> load(const T* p) const { return load_first(p, n); }
  void store(T* p, const Batch<T>& b) const { store_first(b, p, n); }
};

template <class T, class F> void each_batch(std::int64_t begin, std::int64_t end, F f) {
  std::int64_t i = begin;
  for (; i + kWidth<T> <= end; i += kWidth<T>) f(i, Whole<T>{});
  if (i < end) f(i, First<T>{end - i});
}

template <class T, class Step> void run_dense(const Tensor& x, const Tensor& g, const Step& step) {
  parallel_for(x.size(), kGrain, [&step, from = elements<T>(g)](std::int64_t begin, std::int64_t end) {
    each_batch<T>(begin, end, [step, from](std::int64_t i, auto part) { step(i, part.load(from + i), part); });
  });
}

// A sparse gradient beside its variable.
template <class T> class Rows {
 public:
  Rows(const Tensor& x, const StepGradient& g) : order_(*g.order), values_(elements<T>(g.values)), extent_(x.shape()[0]) {
    for (int d = 1; d < x.ndim(); ++d) width_ *= x.shape()[d];
  }

  template <class Step> void run_named(const Step& step) const {
    if (width_ == 0) return;
    parallel_for(count(), grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) run_row(r, step);
    });
  }

  // The gradient is zero in rows without a name.
  template <class Step> void run_all(const Step& step) const {
    if (width_ == 0) return;
    const std::int64_t *rows = order_.rows.data(), *rows_end = rows + count();
    parallel_for(extent_, grain(), [&](std::int64_t begin, std::int64_t end) {
      const auto rest_until = [&](std::int64_t done, std::int64_t row) {
        each_batch<T>(done * width_, row * width_, [step](std::int64_t i, auto part) { step(i, Batch<T>(T(0)), part); });
      };
      std::int64_t done = begin;
      for (const std::int64_t* row = std::lower_bound(rows, rows_end, begin); row != rows_end && *row < end; ++row) {
        rest_until(done, *row);
        run_row(row - rows, step);
        done = *row + 1;
      }
      rest_until(done, end);
    });
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(order_.rows.size()); }
  std::int64_t grain() const { return std::max<std::int64_t>(1, kGrain / width_); }

  // Sums the places of one row and goes on with the sum.
  template <class Step> void run_row(std::int64_t r, const Step& step) const {
    const std::int64_t first = order_.rows[static_cast<std::size_t>(r)] * width_, width = width_;
    const std::int64_t* starts = order_.starts.data() + r;
    const std::int64_t *place = order_.places.data() + starts[0], *end = order_.places.data() + starts[1];
    const T* values = values_ - first;
    each_batch<T>(first, first + width, [=](std::int64_t i, auto part) {
      Batch<T> g = part.load(values + *place * width + i);
      for (const std::int64_t* p = place + 1; p != end; ++p) g += part.load(values + *p * width + i);
      step(i, g, part);
    });
  }

  const RowOrder& order_;
  const T* values_;
  std::int64_t extent_, width_ = 1;
};

template <class T, class Step> void run(const Tensor& x, const StepGradient& g, const Step& step, bool all_rows = false) {
  if (!g.order) run_dense<T>(x, g.values, step);
  else if (all_rows) Rows<T>(x, g).run_all(step);
  else Rows<T>(x, g).run_named(step);
}

template <class T> struct Descend {
  T* x;
  T rate;
  template <class Part> void operator()(std::int64_t i, const Batch<T>& g, Part part) const { part.store(x + i, xsimd::fnma(Batch<T>(rate), g, part.load(x + i))); }
};

template <class T> struct MomentumMove {
  T *x, *a;
  T keep, rate;
  bool nesterov;
  template <class Part> void operator()(std::int64_t i, const Batch<T>& g, Part part) const {
    const Batch<T> sum = xsimd::fma(Batch<T>(keep), part.load(a + i), g);
    part.store(a + i, sum);
    part.store(x + i, xsimd::fnma(Batch<T>(rate), nesterov ? xsimd::fma(Batch<T>(keep), sum, g) : sum, part.load(x + i)));
  }
};

template <class T> struct AdamMove {
  T *x, *m, *v;
  T keep_out_m, keep_out_v, rate, epsilon;
  template <class Part> void operator()(std::int64_t i, const Batch<T>& g, Part part) const {
    const Batch<T> m_old = part.load(m + i), v_old = part.load(v + i);
    const Batch<T> m_new = xsimd::fma(Batch<T>(keep_out_m), g - m_old, m_old);
    const Batch<T> v_new = xsimd::fma(Batch<T>(keep_out_v), g * g - v_old, v_old);
    part.store(m + i, m_new);
    part.store(v + i, v_new);
    part.store(x + i, part.load(x + i) - Batch<T>(rate) * m_new / (xsimd::sqrt(v_new) + Batch<T>(epsilon)));
  }
};

}  // namespace

void gradient_descent(Tensor& x, const StepGradient& g, double rate) {
  visit_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    run<T>(x, g, Descend<T>{elements<T>(x), static_cast<T>(rate)});
  });
}

void momentum(Tensor& x, Tensor& a, const StepGradient& g, const MomentumStep& s) {
  visit_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    run<T>(x, g, MomentumMove<T>{elements<T>(x), elements<T>(a), static_cast<T>(s.momentum), static_cast<T>(s.rate), s.nesterov});
  });
}

void adam(Tensor& x, Tensor& m, Tensor& v, const StepGradient& g, const AdamStep& s) {
  visit_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    run<T>(x, g, AdamMove<T>{elements<T>(x), elements<T>(m), elements<T>(v), static_cast<T>(s.keep_out_m), static_cast<T>(s.keep_out_v),
                             static_cast<T>(s.rate), static_cast<T>(s.epsilon)}, !s.lazy);
  });
}

}  // namespace tapedeck::kernels
