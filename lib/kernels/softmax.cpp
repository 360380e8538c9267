// Three passes over a row while it is in the first cache: its maximum, the sum of exp(x - maximum), the result.
#include "kernels/softmax.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "base/visit.h"
#include "kernels/fold.h"
#include "tensor/storage.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kCut = {1 << 13, 1 << 15};   // of elements

// Rows of n elements, up to `end`, which is where the tensor ends.
template <class T> struct Logits {
  const T* x;
  std::int64_t n;
  const T* end;

  // Calls f(position, vector, count). The last vector is filled up with -inf, which is neutral to both the maximum and the
  // sum of exponentials. It is read whole wherever other rows follow: putting it together takes longer than all the rest.
  template <class F> void each_vector(const F& f) const {
    constexpr std::int64_t w = kWidth<T>;
    std::int64_t i = 0;
    for (; i + w <= n; i += w) f(i, Batch<T>::load_unaligned(x + i), w);
    if (i == n) return;
    const Batch<T> neutral(Max::identity<T>);
    const Batch<T> rest = end - (x + i) >= w ? Batch<T>::load_unaligned(x + i) : load_first(x + i, n - i);
    f(i, where(Batch<T>::load_unaligned(kPositions) < Batch<T>(static_cast<T>(n - i)), rest, neutral), n - i);
  }
  T max() const {
    Batch<T> m(Max::identity<T>);
    each_vector([&](std::int64_t, const Batch<T>& v, std::int64_t) { m = maximum(m, v); });
    return fold_lanes<Max>(m);
  }
  // The sum of exp(x - max); f(position, exponentials, count) sees them pass.
  template <class F> T sum_of_exp(T max, const F& f) const {
    Batch<T> sum(T(0));
    each_vector([&](std::int64_t i, const Batch<T>& v, std::int64_t count) {
      const Batch<T> e = exp(v - max);
      sum += e;
      f(i, e, count);
    });
    return fold_lanes<Sum>(sum);
  }
  T log_sum_of_exp(T max) const {
    return std::log(sum_of_exp(max, [](std::int64_t, const Batch<T>&, std::int64_t) {}));
  }

 private:
  static constexpr T kPositions[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
};

template <class T> void store_first(const Batch<T>& v, T* y, std::int64_t count) {
  if (count == kWidth<T>) return v.store_unaligned(y);
  alignas(64) T lanes[kWidth<T>];
  v.store_aligned(lanes);
  std::copy_n(lanes, count, y);
}

template <class T> void softmax_row(const Logits<T>& x, T* y) {
  const T scale = 1 / x.sum_of_exp(x.max(), [y](std::int64_t i, const Batch<T>& e, std::int64_t count) { store_first(e, y + i, count); });
  for (std::int64_t i = 0; i < x.n; ++i) y[i] *= scale;
}

template <class T> void log_softmax_row(const Logits<T>& row, T* y) {
  const T max = row.max(), log_sum = row.log_sum_of_exp(max);
  for (std::int64_t i = 0; i < row.n; ++i) y[i] = row.x[i] - max - log_sum;
}

// Calls f(index, row) for every row of x.
template <class T, class F> void each_row(const Tensor& x, const F& f) {
  if (x.size() == 0) return;
  const std::int64_t n = x.shape()[x.ndim() - 1];
  const T *in = elements<T>(x), *end = in + x.size();
  parallel_for(x.size() / n, cut_of(kCut, n), [&](std::int64_t begin, std::int64_t end_row) {
    for (std::int64_t r = begin; r < end_row; ++r) f(r, Logits<T>{in + r * n, n, end});
  });
}

}  // namespace

void softmax(const Tensor& x, Tensor& y) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    each_row<T>(x, [out = elements<T>(y)](std::int64_t r, const Logits<T>& row) { softmax_row(row, out + r * row.n); });
  });
}

void log_softmax(const Tensor& x, Tensor& y) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    each_row<T>(x, [out = elements<T>(y)](std::int64_t r, const Logits<T>& row) { log_softmax_row(row, out + r * row.n); });
  });
}

void cross_entropy(const Tensor& labels, const Tensor& logits, Tensor& y) {
  visit_floating(logits.dtype(), [&](auto one) {
    using T = decltype(one);
    const auto run = [&](const auto* label) {
      each_row<T>(logits, [label, out = elements<T>(y)](std::int64_t r, const Logits<T>& row) {
        const T max = row.max();
        out[r] = row.log_sum_of_exp(max) - (row.x[label[r]] - max);
      });
    };
    if (labels.dtype() == DType::i32) run(elements<std::int32_t>(labels));
    else run(elements<std::int64_t>(labels));
  });
}

}  // namespace tapedeck::kernels
