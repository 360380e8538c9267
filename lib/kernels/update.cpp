// Loops of the update rules. Rows of a matrix begin and end anywhere, so nothing is written beyond the last element.
#include "kernels/update.h"

#include <algorithm>
#include <numeric>

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
  void store(T* p, const Batch<T>& b) const {
    alignas(64) T lanes[kWidth<T>];
    b.store_aligned(lanes);
    std::memcpy(p, lanes, static_cast<std::size_t>(n) * sizeof(T));
  }
};

template <class T, class F> void each_batch(std::int64_t begin, std::int64_t end, F f) {
  std::int64_t i = begin;
  for (; i + kWidth<T> <= end; i += kWidth<T>) f(i, Whole<T>{});
  if (i < end) f(i, First<T>{end - i});
}

std::int64_t row_size(const IndexedSlices& g) { return g.dense_shape[0] ? g.dense_shape.size() / g.dense_shape[0] : 0; }

template <class T> void descend(T* x, const T* g, std::int64_t begin, std::int64_t end, double rate) {
  const Batch<T> r(static_cast<T>(rate));
  each_batch<T>(begin, end, [=](std::int64_t i, auto part) { part.store(x + i, xsimd::fnma(r, part.load(g + i), part.load(x + i))); });
}

template <class T> class AdamLoop {
 public:
  AdamLoop(Tensor& x, Tensor& m, Tensor& v, const AdamStep& s)
      : x_(elements<T>(x)), m_(elements<T>(m)), v_(elements<T>(v)), keep_out_m_(static_cast<T>(s.keep_out_m)),
        keep_out_v_(static_cast<T>(s.keep_out_v)), rate_(static_cast<T>(s.rate)), epsilon_(static_cast<T>(s.epsilon)) {}

  // gradient(i, part) is the batch of g at element i.
  template <class G> void run(std::int64_t begin, std::int64_t end, G gradient) const {
    each_batch<T>(begin, end, [self = *this, gradient](std::int64_t i, auto part) {
      const Batch<T> g = gradient(i, part), m_old = part.load(self.m_ + i), v_old = part.load(self.v_ + i);
      const Batch<T> m = xsimd::fma(Batch<T>(self.keep_out_m_), g - m_old, m_old);
      const Batch<T> v = xsimd::fma(Batch<T>(self.keep_out_v_), g * g - v_old, v_old);
      part.store(self.m_ + i, m);
      part.store(self.v_ + i, v);
      part.store(self.x_ + i, part.load(self.x_ + i) - Batch<T>(self.rate_) * m / (xsimd::sqrt(v) + Batch<T>(self.epsilon_)));
    });
  }

 private:
  T *x_, *m_, *v_;
  T keep_out_m_, keep_out_v_, rate_, epsilon_;
};

}  // namespace

void gradient_descent(Tensor& x, const Tensor& g, double rate) {
  visit_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    parallel_for(x.size(), kGrain, [to = elements<T>(x), from = elements<T>(g), rate](std::int64_t begin, std::int64_t end) { descend(to, from, begin, end, rate); });
  });
}

void gradient_descent(Tensor& x, const IndexedSlices& g, double rate) {
  const std::int64_t width = row_size(g);
  visit_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t k = 0; k < g.indices.size(); ++k)
      descend(elements<T>(x) + row_at(g.indices, k) * width, elements<T>(g.values) + k * width, 0, width, rate);
  });
}

void adam(Tensor& x, Tensor& m, Tensor& v, const Tensor& g, const AdamStep& step) {
  visit_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const AdamLoop<T> loop(x, m, v, step);
    const T* from = elements<T>(g);
    parallel_for(x.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      loop.run(begin, end, [from](std::int64_t i, auto part) { return part.load(from + i); });
    });
  });
}

void adam(Tensor& x, Tensor& m, Tensor& v, const IndexedSlices& g, const AdamStep& step) {
  const std::int64_t width = row_size(g);
  if (width == 0) return;
  const std::int64_t *rows = elements<std::int64_t>(g.indices), *rows_end = rows + g.indices.size();
  visit_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const AdamLoop<T> loop(x, m, v, step);
    const auto without_gradient = [](std::int64_t, auto) { return Batch<T>(T(0)); };
    parallel_for(g.dense_shape[0], std::max<std::int64_t>(1, kGrain / width), [&](std::int64_t begin, std::int64_t end) {
      std::int64_t done = begin;
      for (const std::int64_t* row = std::lower_bound(rows, rows_end, begin); row != rows_end && *row < end; ++row) {
        loop.run(done * width, *row * width, without_gradient);
        const std::int64_t first = *row * width;
        const T* from = elements<T>(g.values) + (row - rows) * width;
        loop.run(first, first + width, [from, first](std::int64_t i, auto part) { return part.load(from + (i - first)); });
        done = *row + 1;
      }
      loop.run(done * width, end * width, without_gradient);
    });
  });
}

IndexedSlices summed_rows(const IndexedSlices& g) {
  const std::int64_t width = row_size(g);
  std::vector<std::int64_t> order(static_cast<std::size_t>(g.indices.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return row_at(g.indices, a) < row_at(g.indices, b); });
  std::vector<std::int64_t> rows;
  for (const std::int64_t k : order)
    if (const std::int64_t row = row_at(g.indices, k); rows.empty() || rows.back() != row) rows.push_back(row);

  Shape shape = g.values.shape();
  shape.set(0, static_cast<std::int64_t>(rows.size()));
  IndexedSlices sum{zeros(shape, g.values.dtype()), tensor(rows), g.dense_shape};
  visit_floating(g.values.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* to = elements<T>(sum.values);
    std::size_t at = 0;
    for (const std::int64_t k : order) {
      if (row_at(g.indices, k) != rows[at]) {
        ++at;
        to += width;
      }
      descend(to, elements<T>(g.values) + k * width, 0, width, -1);
    }
  });
  return sum;
}

}  // namespace tapedeck::kernels
