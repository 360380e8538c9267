// Softmax in three passes over a row while it is in the L1 cache: the maximum, the sum of exp(x - maximum),
// the result. Columns likewise, a strip of several vectors of columns at a time. Threads split the rows or
// strips.
#include "kernels/nn/softmax.h"

#include <algorithm>
#include <cmath>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "core/visit.h"
#include "kernels/layout/strided_view.h"
#include "kernels/reduce/fold.h"
#include "kernels/simd/lanes.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kSoftmaxCut = {1 << 13, 1 << 15};   // of elements
// The entries in a block of a column. Each block is summed first, then the sums of blocks, so that rounding
// errors are as small as in short sums.
constexpr std::int64_t kSoftmaxBlock = 256;

// exp(x) for x ≤ 0. Far below zero, as for masked elements, exp would compute with subnormal numbers, which
// take ten times as long as others. There, exp is evaluated at 0 instead, and the result replaced by 0.
template <class T> [[gnu::always_inline]] inline Batch<T> exp_below_zero(const Batch<T>& x) {
  const Batch<T> lowest(std::is_same_v<T, float> ? T(-104) : T(-746));   // exp of less is 0
  const auto is_zero = x < lowest;
  return where(is_zero, Batch<T>(T(0)), exp(where(is_zero, Batch<T>(T(0)), x)));
}

// A row of n elements, and the end of its tensor.
template <class T> struct Logits {
  const T* x;
  std::int64_t n;
  const T* end;

  // The vector at i, with `fill` in lanes past the row. Loads a whole vector unless the tensor ends before:
  // assembling a vector from parts would dominate the cost.
  Batch<T> load(std::int64_t i, T fill) const {
    constexpr std::int64_t w = kWidth<T>;
    if (i + w <= n) return Batch<T>::load_unaligned(x + i);
    const Batch<T> rest = end - (x + i) >= w ? Batch<T>::load_unaligned(x + i) : load_first(x + i, n - i);
    return where(Batch<T>::load_unaligned(kPositions) < Batch<T>(static_cast<T>(n - i)), rest,
                 Batch<T>(fill));
  }
  // Calls f(position, vector, count). The last vector is filled up with -inf, which is neutral to the maximum
  // and to sums of exponentials.
  template <class F> void each_vector(const F& f) const {
    constexpr std::int64_t w = kWidth<T>;
    for (std::int64_t i = 0; i < n; i += w)
      f(i, load(i, Max::identity<T>), std::min(n - i, w));
  }
  T max() const {
    Batch<T> m(Max::identity<T>);
    each_vector([&](std::int64_t, const Batch<T>& v, std::int64_t) { m = maximum(m, v); });
    return fold_lanes<Max>(m);
  }
  // The sum of exp(x - max). Calls f(position, exponentials, count) for each vector.
  template <class F> T sum_of_exp(T max, const F& f) const {
    Batch<T> sum(T(0));
    each_vector([&](std::int64_t i, const Batch<T>& v, std::int64_t count) {
      const Batch<T> e = exp_below_zero<T>(v - max);
      sum += e;
      f(i, e, count);
    });
    return fold_lanes<Sum>(sum);
  }
  T sum_of_exp(T max) const {
    return sum_of_exp(max, [](std::int64_t, const Batch<T>&, std::int64_t) {});
  }
  T log_sum_of_exp(T max) const { return std::log(sum_of_exp(max)); }

 private:
  static constexpr T kPositions[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
};

template <class T> void store_some(const Batch<T>& v, T* y, std::int64_t count) {
  if (count == kWidth<T>)
    v.store_unaligned(y);
  else
    store_first(v, y, count);
}

template <class T> void softmax_row(const Logits<T>& x, T* y) {
  const T scale = 1 / x.sum_of_exp(x.max(), [y](std::int64_t i, const Batch<T>& e, std::int64_t count) {
    store_some(e, y + i, count);
  });
  for (std::int64_t i = 0; i < x.n; ++i)
    y[i] *= scale;
}

template <class T> void log_softmax_row(const Logits<T>& row, T* y) {
  const T max = row.max(), log_sum = row.log_sum_of_exp(max);
  for (std::int64_t i = 0; i < row.n; ++i)
    y[i] = row.x[i] - max - log_sum;
}

// Does not subtract an infinite maximum, since inf - inf is NaN. Also writes the softmax unless it is null:
// zeros if all elements are -inf.
template <class T> T logsumexp_row(const Logits<T>& row, T* softmax) {
  const T max = row.max(), shift = std::isinf(max) ? T(0) : max;
  if (!softmax) return shift + row.log_sum_of_exp(shift);
  const T sum = row.sum_of_exp(shift, [softmax](std::int64_t i, const Batch<T>& e, std::int64_t count) {
    store_some(e, softmax + i, count);
  });
  const T scale = sum == 0 ? T(0) : 1 / sum;
  for (std::int64_t i = 0; i < row.n; ++i)
    softmax[i] *= scale;
  return shift + std::log(sum);
}

// The negative sum of labels times log-probabilities.
template <class T> T cross_entropy_row(const Logits<T>& labels, const Logits<T>& row) {
  const T max = row.max();
  const Batch<T> log_sum(row.log_sum_of_exp(max));
  Batch<T> loss(T(0));
  for (std::int64_t i = 0; i < row.n; i += kWidth<T>)
    loss += labels.load(i, 0) * (log_sum - (row.load(i, max) - max));
  return fold_lanes<Sum>(loss);
}

// Calls f(index, row) for every row of x, in parallel.
template <class T, class F> void each_row(const Tensor& x, const F& f) {
  if (x.size() == 0) return;
  const std::int64_t n = x.shape()[x.ndim() - 1];
  const T *in = elements<T>(x), *end = in + x.size();
  parallel_for(x.size() / n, cut_of(kSoftmaxCut, n), [&](std::int64_t begin, std::int64_t end_row) {
    for (std::int64_t r = begin; r < end_row; ++r)
      f(r, Logits<T>{in + r * n, n, end});
  });
}

// The softmax of a strip: K vectors of columns of n entries, with `stride` between rows. y may be x.
template <bool logarithm, int K, class T>
void softmax_strip(const T* x, T* y, std::int64_t n, std::int64_t stride) {
  constexpr std::int64_t w = kWidth<T>;
  const auto at = [=](std::int64_t i, int k) { return Batch<T>::load_unaligned(x + i * stride + k * w); };
  Batch<T> max[K], sum[K];
  for (int k = 0; k < K; ++k)
    max[k] = Batch<T>(Max::identity<T>), sum[k] = Batch<T>(T(0));
  for (std::int64_t i = 0; i < n; ++i)
    for (int k = 0; k < K; ++k)
      max[k] = maximum(max[k], at(i, k));
  for (std::int64_t begin = 0; begin < n; begin += kSoftmaxBlock) {
    Batch<T> part[K];
    for (int k = 0; k < K; ++k)
      part[k] = Batch<T>(T(0));
    for (std::int64_t i = begin; i < std::min(begin + kSoftmaxBlock, n); ++i)
      for (int k = 0; k < K; ++k) {
        const Batch<T> e = exp_below_zero<T>(at(i, k) - max[k]);
        part[k] += e;
        if constexpr (!logarithm) e.store_unaligned(y + i * stride + k * w);
      }
    for (int k = 0; k < K; ++k)
      sum[k] += part[k];
  }
  for (int k = 0; k < K; ++k)
    sum[k] = logarithm ? log(sum[k]) : 1 / sum[k];
  for (std::int64_t i = 0; i < n; ++i)
    for (int k = 0; k < K; ++k) {
      T* out = y + i * stride + k * w;
      if constexpr (logarithm)
        (at(i, k) - max[k] - sum[k]).store_unaligned(out);
      else
        (Batch<T>::load_unaligned(out) * sum[k]).store_unaligned(out);
    }
}

// softmax_strip for fewer columns than a vector has lanes, through a copy.
template <bool logarithm, class T>
void softmax_of_few(const T* x, T* y, std::int64_t n, std::int64_t stride, std::int64_t columns) {
  constexpr std::int64_t w = kWidth<T>;
  CachedVector<T> copy(static_cast<std::size_t>(n * w), T(0));
  for (std::int64_t i = 0; i < n; ++i)
    std::copy_n(x + i * stride, columns, copy.data() + i * w);
  softmax_strip<logarithm, 1>(copy.data(), copy.data(), n, w);
  for (std::int64_t i = 0; i < n; ++i)
    std::copy_n(copy.data() + i * w, columns, y + i * stride);
}

template <bool logarithm, class T>
void softmax_columns(const T* x, std::int64_t outer, std::int64_t n, std::int64_t inner, T* y) {
  constexpr int side_by_side = 4;
  constexpr std::int64_t w = kWidth<T>, wide = side_by_side * w;
  const std::int64_t strips = (inner + wide - 1) / wide;
  parallel_for(outer * strips, cut_of(kSoftmaxCut, n * std::min(wide, inner)),
               [=](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t s = begin; s < end; ++s) {
                   const std::int64_t first = s / strips * n * inner;
                   std::int64_t j = s % strips * wide;
                   if (j + wide <= inner) {
                     softmax_strip<logarithm, side_by_side>(x + first + j, y + first + j, n, inner);
                     continue;
                   }
                   for (; j + w <= inner; j += w)
                     softmax_strip<logarithm, 1>(x + first + j, y + first + j, n, inner);
                   if (j < inner)
                     softmax_of_few<logarithm>(x + first + j, y + first + j, n, inner, inner - j);
                 }
               });
}

// Softmax of rows if the axis is the last one, else of columns.
template <bool logarithm> void softmax_along(const Tensor& x, int axis, Tensor& y) {
  if (x.size() == 0) return;
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    T* out = elements<T>(y);
    if (axis == -1) {
      return each_row<T>(x, [out](std::int64_t r, const Logits<T>& row) {
        if constexpr (logarithm)
          log_softmax_row(row, out + r * row.n);
        else
          softmax_row(row, out + r * row.n);
      });
    }
    const AxisView view(x.shape(), x.ndim() + axis);
    softmax_columns<logarithm>(elements<T>(x), view.before, view.extent, view.after, out);
  });
}

// y = (v - Σ p v) p for a row.
template <class T> void derivative_row(const T* p, const T* v, std::int64_t n, T* y) {
  const T total = sum_of<T>(
      n, [=](std::int64_t i, auto one) { return load<decltype(one)>(p + i) * load<decltype(one)>(v + i); });
  each_group<T>(n, [=](std::int64_t i, auto one) {
    using V = decltype(one);
    store((load<V>(v + i) - V(total)) * load<V>(p + i), y + i);
  });
}

// derivative_row for up to kStrip columns side by side.
constexpr std::int64_t kStrip = 64;
template <class T> void derivative_strip(const T* p, const T* v, std::int64_t n, std::int64_t stride,
                                         std::int64_t columns, T* __restrict y) {
  T total[kStrip] = {};
  for (std::int64_t begin = 0; begin < n; begin += kSoftmaxBlock) {
    T part[kStrip] = {};
    for (std::int64_t i = begin * stride; i < std::min(begin + kSoftmaxBlock, n) * stride; i += stride)
      for (std::int64_t j = 0; j < columns; ++j)
        part[j] = detail::multiply_add(p[i + j], v[i + j], part[j]);
    for (std::int64_t j = 0; j < columns; ++j)
      total[j] += part[j];
  }
  for (std::int64_t i = 0; i < n * stride; i += stride)
    for (std::int64_t j = 0; j < columns; ++j)
      y[i + j] = (v[i + j] - total[j]) * p[i + j];
}

}   // namespace

void softmax_derivative(const Tensor& p, const Tensor& v, int axis, Tensor& y) {
  if (v.size() == 0) return;
  const AxisView view(p.shape(), p.ndim() + axis);
  const std::int64_t n = view.extent, inner = view.after, strips = (inner + kStrip - 1) / kStrip;
  visit_floating(p.dtype(), [&](auto one) {
    using T = decltype(one);
    const T *weights = elements<T>(p), *in = elements<T>(v);
    T* out = elements<T>(y);
    parallel_for(
        v.size() / (n * inner) * strips, cut_of(kSoftmaxCut, n * std::min(kStrip, inner)),
        [=, before = view.before](std::int64_t begin, std::int64_t end) {
          for (std::int64_t s = begin; s < end; ++s) {
            const std::int64_t slab = s / strips, first = s % strips * kStrip, at = slab * n * inner + first;
            const T* of_slab = weights + slab % before * n * inner + first;
            if (inner == 1)
              derivative_row(of_slab, in + at, n, out + at);
            else
              derivative_strip(of_slab, in + at, n, inner, std::min(kStrip, inner - first), out + at);
          }
        });
  });
}

template <class T> void softmax_rows(T* x, std::int64_t rows, std::int64_t n) {
  for (const T* const end = x + rows * n; x != end; x += n)
    softmax_row(Logits<T>{x, n, end}, x);
}
template void softmax_rows(float*, std::int64_t, std::int64_t);
template void softmax_rows(double*, std::int64_t, std::int64_t);

template <class T> void softmax_derivative_rows(const T* p, std::int64_t rows, std::int64_t n, T* v) {
  for (std::int64_t i = 0; i < rows; ++i, p += n, v += n)
    derivative_row(p, v, n, v);
}
template void softmax_derivative_rows(const float*, std::int64_t, std::int64_t, float*);
template void softmax_derivative_rows(const double*, std::int64_t, std::int64_t, double*);

void softmax(const Tensor& x, int axis, Tensor& y) { softmax_along<false>(x, axis, y); }
void log_softmax(const Tensor& x, int axis, Tensor& y) { softmax_along<true>(x, axis, y); }

void logsumexp(const Tensor& x, Tensor& y, Tensor* softmax) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    if (x.size() == 0) return static_cast<void>(std::fill_n(elements<T>(y), y.size(), Max::identity<T>));
    each_row<T>(x, [out = elements<T>(y), p = softmax ? elements<T>(*softmax) : nullptr](
                       std::int64_t r, const Logits<T>& row) {
      out[r] = logsumexp_row(row, p ? p + r * row.n : nullptr);
    });
  });
}

void dense_cross_entropy(const Tensor& labels, const Tensor& logits, Tensor& y) {
  visit_floating(logits.dtype(), [&](auto one) {
    using T = decltype(one);
    if (logits.size() == 0) return static_cast<void>(std::fill_n(elements<T>(y), y.size(), T(0)));
    const T* label = elements<T>(labels);
    each_row<T>(logits, [label, end = label + labels.size(), out = elements<T>(y)](std::int64_t r,
                                                                                   const Logits<T>& row) {
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

}   // namespace tapedeck::kernels
