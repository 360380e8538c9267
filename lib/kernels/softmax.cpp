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

// A row of n elements, and where the tensor ends.
template <class T> struct Logits {
  const T* x;
  std::int64_t n;
  const T* end;

  // The vector at i, with `fill` behind the row. It is read whole wherever other rows follow: putting it together takes longer
  // than all the rest.
  Batch<T> load(std::int64_t i, T fill) const {
    constexpr std::int64_t w = kWidth<T>;
    if (i + w <= n) return Batch<T>::load_unaligned(x + i);
    const Batch<T> rest = end - (x + i) >= w ? Batch<T>::load_unaligned(x + i) : load_first(x + i, n - i);
    return where(Batch<T>::load_unaligned(kPositions) < Batch<T>(static_cast<T>(n - i)), rest, Batch<T>(fill));
  }
  // Calls f(position, vector, count). What fills the last vector, -inf, is neutral to the maximum and to sums of exponentials.
  template <class F> void each_vector(const F& f) const {
    constexpr std::int64_t w = kWidth<T>;
    for (std::int64_t i = 0; i < n; i += w) f(i, load(i, Max::identity<T>), std::min(n - i, w));
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
  T sum_of_exp(T max) const { return sum_of_exp(max, [](std::int64_t, const Batch<T>&, std::int64_t) {}); }
  T log_sum_of_exp(T max) const { return std::log(sum_of_exp(max)); }

 private:
  static constexpr T kPositions[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
};

template <class T> void store(const Batch<T>& v, T* y, std::int64_t count) {
  if (count == kWidth<T>) v.store_unaligned(y);
  else store_first(v, y, count);
}

template <class T> void softmax_row(const Logits<T>& x, T* y) {
  const T scale = 1 / x.sum_of_exp(x.max(), [y](std::int64_t i, const Batch<T>& e, std::int64_t count) { store(e, y + i, count); });
  for (std::int64_t i = 0; i < x.n; ++i) y[i] *= scale;
}

template <class T> void log_softmax_row(const Logits<T>& row, T* y) {
  const T max = row.max(), log_sum = row.log_sum_of_exp(max);
  for (std::int64_t i = 0; i < row.n; ++i) y[i] = row.x[i] - max - log_sum;
}

// An infinite maximum is not taken off, since inf - inf is NaN. Writes the softmax too, unless it is null; zeros where all is -inf.
template <class T> T logsumexp_row(const Logits<T>& row, T* softmax) {
  const T max = row.max(), shift = std::isinf(max) ? T(0) : max;
  if (!softmax) return shift + row.log_sum_of_exp(shift);
  const T sum = row.sum_of_exp(shift, [softmax](std::int64_t i, const Batch<T>& e, std::int64_t count) { store_first(e, softmax + i, count); });
  const T scale = sum == 0 ? T(0) : 1 / sum;
  for (std::int64_t i = 0; i < row.n; ++i) softmax[i] *= scale;
  return shift + std::log(sum);
}

// Minus the sum of labels times log-probabilities.
template <class T> T cross_entropy_row(const Logits<T>& labels, const Logits<T>& row) {
  const T max = row.max();
  const Batch<T> log_sum(row.log_sum_of_exp(max));
  Batch<T> loss(T(0));
  for (std::int64_t i = 0; i < row.n; i += kWidth<T>) loss += labels.load(i, 0) * (log_sum - (row.load(i, max) - max));
  return fold_lanes<Sum>(loss);
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

void logsumexp(const Tensor& x, Tensor& y, Tensor* softmax) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    if (x.size() == 0) return static_cast<void>(std::fill_n(elements<T>(y), y.size(), Max::identity<T>));
    each_row<T>(x, [out = elements<T>(y), p = softmax ? elements<T>(*softmax) : nullptr](std::int64_t r, const Logits<T>& row) {
      out[r] = logsumexp_row(row, p ? p + r * row.n : nullptr);
    });
  });
}

void dense_cross_entropy(const Tensor& labels, const Tensor& logits, Tensor& y) {
  visit_floating(logits.dtype(), [&](auto one) {
    using T = decltype(one);
    if (logits.size() == 0) return static_cast<void>(std::fill_n(elements<T>(y), y.size(), T(0)));
    const T* label = elements<T>(labels);
    each_row<T>(logits, [label, end = label + labels.size(), out = elements<T>(y)](std::int64_t r, const Logits<T>& row) {
      out[r] = cross_entropy_row(Logits<T>{label + r * row.n, row.n, end}, row);
    });
  });
}

void cross_entropy(const Tensor& labels, const Tensor& logits, Tensor& y) {
  visit_floating(logits.dtype(), [&](auto one) {
    using T = decltype(one);
    visit_indices(labels, [&](const auto label) {
      each_row<T>(logits, [label, out = elements<T>(y)](std::int64_t r, const Logits<T>& row) {
        const T max = row.max();
        out[r] = row.log_sum_of_exp(max) - (row.x[label[static_cast<std::size_t>(r)]] - max);
      });
    });
  });
}

}  // namespace tapedeck::kernels
