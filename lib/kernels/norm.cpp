// Rows with mean 0 and variance 1, in few passes over a row while it is in the first cache.
#include "kernels/norm.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "base/visit.h"
#include "kernels/lanes.h"
#include "tensor/storage.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kCut = {1 << 13, 1 << 15};   // of elements

// The sum of f(i, V()) over all i < n. Four sums at once, since each addition waits for the one before.
template <class T, class F> T sum_of(std::int64_t n, const F& f) {
  constexpr std::int64_t w = kWidth<T>;
  Batch<T> sums[4] = {Batch<T>(T(0)), Batch<T>(T(0)), Batch<T>(T(0)), Batch<T>(T(0))};
  std::int64_t i = 0;
  for (; i + 4 * w <= n; i += 4 * w)
    for (std::int64_t k = 0; k < 4; ++k) sums[k] += f(i + k * w, Batch<T>());
  for (; i + w <= n; i += w) sums[0] += f(i, Batch<T>());
  T total = xsimd::hadd((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (; i < n; ++i) total += f(i, T());
  return total;
}

template <class T> struct Moments {
  T mean, scale;   // one over the standard deviation

  Moments(const T* x, std::int64_t n, double epsilon) {
    mean = sum_of<T>(n, [=](std::int64_t i, auto one) { return load<decltype(one)>(x + i); }) / static_cast<T>(n);
    const T squares = sum_of<T>(n, [x, m = mean](std::int64_t i, auto one) {
      using V = decltype(one);
      const V centred = load<V>(x + i) - V(m);
      return centred * centred;
    });
    scale = 1 / std::sqrt(squares / static_cast<T>(n) + static_cast<T>(epsilon));
  }
};

template <class T> void forward_row(const T* x, const T* scale, const T* offset, std::int64_t n, double epsilon, T* y) {
  const Moments<T> of(x, n, epsilon);
  each_group<T>(n, [=](std::int64_t i, auto one) {
    using V = decltype(one);
    store((load<V>(x + i) - V(of.mean)) * V(of.scale) * load<V>(scale + i) + load<V>(offset + i), y + i);
  });
}

// With x̂ the row that has mean 0 and variance 1, and g = dy · scale: dx = (g - mean(g) - x̂ · mean(g · x̂)) / deviation.
// The gradients of scale and offset are added to what is there.
template <class T> void gradient_row(const T* dy, const T* x, const T* scale, std::int64_t n, double epsilon, T* dx, T* dscale, T* doffset) {
  const Moments<T> of(x, n, epsilon);
  each_group<T>(n, [=](std::int64_t i, auto one) {
    using V = decltype(one);
    const V d = load<V>(dy + i), normal = (load<V>(x + i) - V(of.mean)) * V(of.scale);
    store(load<V>(dscale + i) + d * normal, dscale + i);
    store(load<V>(doffset + i) + d, doffset + i);
  });
  const T total = sum_of<T>(n, [=](std::int64_t i, auto one) { return load<decltype(one)>(dy + i) * load<decltype(one)>(scale + i); });
  const T along = sum_of<T>(n, [=](std::int64_t i, auto one) {
    using V = decltype(one);
    return load<V>(dy + i) * load<V>(scale + i) * ((load<V>(x + i) - V(of.mean)) * V(of.scale));
  });
  const T mean = total / static_cast<T>(n), slope = along / static_cast<T>(n);
  each_group<T>(n, [=](std::int64_t i, auto one) {
    using V = decltype(one);
    const V g = load<V>(dy + i) * load<V>(scale + i), normal = (load<V>(x + i) - V(of.mean)) * V(of.scale);
    store((g - V(mean) - normal * V(slope)) * V(of.scale), dx + i);
  });
}

}  // namespace

void layer_norm(const Tensor& x, const Tensor& scale, const Tensor& offset, double epsilon, Tensor& y) {
  if (x.size() == 0) return;
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    const std::int64_t n = scale.size();
    const T *in = elements<T>(x), *s = elements<T>(scale), *o = elements<T>(offset);
    T* out = elements<T>(y);
    parallel_for(x.size() / n, cut_of(kCut, n), [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) forward_row(in + r * n, s, o, n, epsilon, out + r * n);
    });
  });
}

void layer_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& scale, double epsilon, Tensor& dx, Tensor& dscale, Tensor& doffset) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    const std::int64_t n = scale.size(), rows = x.size() ? x.size() / n : 0;
    const std::int64_t piece = cut_of(kCut, n).piece_of(rows), pieces = rows ? (rows + piece - 1) / piece : 0;
    // Each piece of rows has sums of its own, which are added up in their order.
    CachedVector<T> sums(static_cast<std::size_t>(2 * n * pieces), T(0));
    const T *d = elements<T>(dy), *in = elements<T>(x), *s = elements<T>(scale);
    T *out = elements<T>(dx), *parts = sums.data();
    parallel_for(rows, piece, [=](std::int64_t begin, std::int64_t end) {
      T* part = parts + begin / piece * 2 * n;
      for (std::int64_t r = begin; r < end; ++r) gradient_row(d + r * n, in + r * n, s, n, epsilon, out + r * n, part, part + n);
    });
    T *of_scale = elements<T>(dscale), *of_offset = elements<T>(doffset);
    std::fill_n(of_scale, n, T(0));
    std::fill_n(of_offset, n, T(0));
    for (std::int64_t p = 0; p < pieces; ++p, parts += 2 * n)
      for (std::int64_t i = 0; i < n; ++i) of_scale[i] += parts[i], of_offset[i] += parts[n + i];
  });
}

}  // namespace tapedeck::kernels
