// Layer and batch normalization. Rows are processed in few passes while they are in the L1 cache; columns in
// few passes over pieces (ranges of rows) that fit into the L2 cache. Threads split the pieces, which are cut
// by sizes alone; their sums are added in order.
#include "kernels/nn/normalization.h"

#include <algorithm>
#include <cmath>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "core/visit.h"
#include "kernels/simd/lanes.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kNormalizationCut = {1 << 13, 1 << 15};   // of elements

template <class T> struct Moments {
  T mean, scale;   // scale is 1 / standard deviation

  Moments(const T* x, std::int64_t n, double epsilon) {
    mean = sum_of<T>(n, [=](std::int64_t i, auto one) { return load<decltype(one)>(x + i); }) /
           static_cast<T>(n);
    const T squares = sum_of<T>(n, [x, m = mean](std::int64_t i, auto one) {
      using V = decltype(one);
      const V centred = load<V>(x + i) - V(m);
      return centred * centred;
    });
    scale = 1 / std::sqrt(squares / static_cast<T>(n) + static_cast<T>(epsilon));
  }
};

template <class T>
void forward_row(const T* x, const T* scale, const T* offset, std::int64_t n, double epsilon, T* y) {
  const Moments<T> of(x, n, epsilon);
  each_group<T>(n, [=](std::int64_t i, auto one) {
    using V = decltype(one);
    store((load<V>(x + i) - V(of.mean)) * V(of.scale) * load<V>(scale + i) + load<V>(offset + i), y + i);
  });
}

// Let x̂ be the normalized row and g = dy · scale: dx = (g - mean(g) - x̂ · mean(g · x̂)) / deviation. Adds
// to dscale and doffset.
template <class T> void gradient_row(const T* dy, const T* x, const T* scale, std::int64_t n, double epsilon,
                                     T* dx, T* dscale, T* doffset) {
  const Moments<T> of(x, n, epsilon);
  each_group<T>(n, [=](std::int64_t i, auto one) {
    using V = decltype(one);
    const V d = load<V>(dy + i), normal = (load<V>(x + i) - V(of.mean)) * V(of.scale);
    store(load<V>(dscale + i) + d * normal, dscale + i);
    store(load<V>(doffset + i) + d, doffset + i);
  });
  const T total = sum_of<T>(n, [=](std::int64_t i, auto one) {
    return load<decltype(one)>(dy + i) * load<decltype(one)>(scale + i);
  });
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

// n columns, stored row by row. Loops process a period, one or more whole rows, at a time, which fills
// vectors even if n is small.
class Columns {
 public:
  Columns(std::int64_t n, std::int64_t rows)
      : n_(n),
        rows_(rows),
        period_(n * std::max<std::int64_t>(1, 128 / n)),
        piece_(cut_of(kNormalizationCut, n).piece_of(rows)) {}
  std::int64_t n() const { return n_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t period() const { return period_; }
  std::int64_t piece() const { return piece_; }
  std::int64_t pieces() const { return (rows_ + piece_ - 1) / piece_; }

  /// Calls f(element, index in the period, V()) for the elements of rows [begin, end).
  template <class T, class F> void each(std::int64_t begin, std::int64_t end, const F& f) const {
    for (std::int64_t first = begin * n_; first < end * n_; first += period_)
      each_group<T>(std::min(period_, end * n_ - first),
                    [&, first](std::int64_t i, auto one) { f(first + i, i, one); });
  }
  template <class T> void fold(const T* of_period, T* of_columns) const {
    std::copy_n(of_period, n_, of_columns);
    for (std::int64_t i = n_; i < period_; ++i)
      of_columns[i % n_] += of_period[i];
  }
  /// Returns f(column) for each element of a period.
  template <class T, class F> CachedVector<T> unfolded(const F& f) const {
    CachedVector<T> all(static_cast<std::size_t>(period_));
    for (std::int64_t i = 0; i < period_; ++i)
      all[static_cast<std::size_t>(i)] =
          i < n_ ? static_cast<T>(f(i)) : all[static_cast<std::size_t>(i - n_)];
    return all;
  }

 private:
  std::int64_t n_, rows_, period_, piece_;
};

template <class V, class T> void add_to(T* sum, const V& v) { store(load<V>(sum) + v, sum); }

// Sums over each column: its mean, its variance around the mean and, if there is a cotangent dy, the sums of
// dy and of dy · (x - mean).
struct Sums {
  CachedVector<double> mean, variance, of_dy, along;

  // Each piece sums around its own mean; then the sums are shifted to the common mean (Chan, Golub and
  // LeVeque 1983).
  template <class T> Sums(const Columns& c, const T* x, const T* dy)
      : mean(size(c)), variance(size(c)), of_dy(size(c)), along(size(c)) {
    const std::int64_t n = c.n(), rows = c.rows();
    CachedVector<T> sums(static_cast<std::size_t>(c.pieces() * 4 * n));
    T* const all = sums.data();
    parallel_for(rows, c.piece(), [&c, x, dy, n, all](std::int64_t begin, std::int64_t end) {
      of_piece(c, x, dy, begin, end, all + begin / c.piece() * 4 * n);
    });
    const auto each = [&](const auto& f) {
      for (std::int64_t p = 0; p < c.pieces(); ++p)
        for (std::int64_t k = 0; k < n; ++k) {
          const T* part = all + p * 4 * n + k;
          f(static_cast<std::size_t>(k), static_cast<double>(std::min(c.piece(), rows - p * c.piece())),
            double(part[0]), double(part[n]), double(part[2 * n]), double(part[3 * n]));
        }
    };
    each([&](std::size_t k, double count, double m, double, double, double) {
      mean[k] += count * m / static_cast<double>(rows);
    });
    each([&](std::size_t k, double count, double m, double squares, double d, double a) {
      const double off = m - mean[k];
      variance[k] += (squares + count * off * off) / static_cast<double>(rows);
      of_dy[k] += d;
      along[k] += a + off * d;
    });
  }

 private:
  static std::size_t size(const Columns& c) { return static_cast<std::size_t>(c.n()); }

  template <class T> static void of_piece(const Columns& c, const T* x, const T* dy, std::int64_t begin,
                                          std::int64_t end, T* part) {
    const std::int64_t n = c.n(), period = c.period();
    CachedVector<T> scratch(static_cast<std::size_t>(4 * period), T(0));
    T *sum = scratch.data(), *squares = sum + period, *of_dy = squares + period, *along = of_dy + period;
    c.each<T>(begin, end, [=](std::int64_t at, std::int64_t i, auto one) {
      add_to(sum + i, load<decltype(one)>(x + at));
    });
    c.fold(sum, part);
    for (std::int64_t k = 0; k < n; ++k)
      part[k] /= static_cast<T>(end - begin);
    const CachedVector<T> means = c.unfolded<T>([&](std::int64_t k) { return part[k]; });
    c.each<T>(begin, end, [=, m = means.data()](std::int64_t at, std::int64_t i, auto one) {
      using V = decltype(one);
      const V centred = load<V>(x + at) - load<V>(m + i);
      add_to(squares + i, V(centred * centred));
      if (!dy) return;
      const V d = load<V>(dy + at);
      add_to(of_dy + i, d);
      add_to(along + i, V(d * centred));
    });
    c.fold(squares, part + n);
    c.fold(of_dy, part + 2 * n);
    c.fold(along, part + 3 * n);
  }
};

}   // namespace

void batch_norm(const Tensor& x, const Tensor& scale, const Tensor& offset, double epsilon, Tensor& y,
                Tensor& mean, Tensor& variance) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    const Columns c(scale.size(), x.size() / scale.size());
    const T *in = elements<T>(x), *s = elements<T>(scale), *o = elements<T>(offset);
    const Sums sums(c, in, static_cast<const T*>(nullptr));
    const auto at = [](const auto& v, std::int64_t k) { return v[static_cast<std::size_t>(k)]; };
    const CachedVector<T> means = c.unfolded<T>([&](std::int64_t k) { return at(sums.mean, k); });
    const CachedVector<T> slopes = c.unfolded<T>([&](std::int64_t k) {
      return static_cast<double>(s[k]) / std::sqrt(at(sums.variance, k) + epsilon);
    });
    const CachedVector<T> offsets = c.unfolded<T>([&](std::int64_t k) { return o[k]; });
    T* out = elements<T>(y);
    parallel_for(
        c.rows(), c.piece(),
        [&, m = means.data(), f = slopes.data(), b = offsets.data()](std::int64_t begin, std::int64_t end) {
          c.each<T>(begin, end, [=](std::int64_t i, std::int64_t k, auto batch) {
            using V = decltype(batch);
            store((load<V>(in + i) - load<V>(m + k)) * load<V>(f + k) + load<V>(b + k), out + i);
          });
        });
    std::copy(sums.mean.begin(), sums.mean.end(), elements<T>(mean));
    std::copy(sums.variance.begin(), sums.variance.end(), elements<T>(variance));
  });
}

// Let r = 1 / standard deviation: dx = scale · r · (dy - mean(dy) - (x - mean) · r² · mean(dy · (x - mean))).
void batch_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& scale, double epsilon, Tensor& dx,
                         Tensor& dscale, Tensor& doffset) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    const Columns c(scale.size(), x.size() / scale.size());
    const T *in = elements<T>(x), *d = elements<T>(dy), *s = elements<T>(scale);
    const Sums sums(c, in, d);
    const double count = static_cast<double>(c.rows());
    const auto at = [](const auto& v, std::int64_t k) { return v[static_cast<std::size_t>(k)]; };
    const auto r = [&](std::int64_t k) { return 1 / std::sqrt(at(sums.variance, k) + epsilon); };
    const CachedVector<T> means = c.unfolded<T>([&](std::int64_t k) { return at(sums.mean, k); });
    const CachedVector<T> means_of_dy =
        c.unfolded<T>([&](std::int64_t k) { return at(sums.of_dy, k) / count; });
    const CachedVector<T> slopes =
        c.unfolded<T>([&](std::int64_t k) { return r(k) * r(k) * at(sums.along, k) / count; });
    const CachedVector<T> factors =
        c.unfolded<T>([&](std::int64_t k) { return static_cast<double>(s[k]) * r(k); });
    T* out = elements<T>(dx);
    parallel_for(c.rows(), c.piece(),
                 [&, m = means.data(), g = means_of_dy.data(), a = slopes.data(), f = factors.data()](
                     std::int64_t begin, std::int64_t end) {
                   c.each<T>(begin, end, [=](std::int64_t i, std::int64_t k, auto batch) {
                     using V = decltype(batch);
                     store(load<V>(f + k) * (load<V>(d + i) - load<V>(g + k) -
                                             (load<V>(in + i) - load<V>(m + k)) * load<V>(a + k)),
                           out + i);
                   });
                 });
    for (std::int64_t k = 0; k < c.n(); ++k) {
      elements<T>(dscale)[k] = static_cast<T>(r(k) * at(sums.along, k));
      elements<T>(doffset)[k] = static_cast<T>(at(sums.of_dy, k));
    }
  });
}

void layer_norm(const Tensor& x, const Tensor& scale, const Tensor& offset, double epsilon, Tensor& y) {
  if (x.size() == 0) return;
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    const std::int64_t n = scale.size();
    const T *in = elements<T>(x), *s = elements<T>(scale), *o = elements<T>(offset);
    T* out = elements<T>(y);
    parallel_for(x.size() / n, cut_of(kNormalizationCut, n), [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r)
        forward_row(in + r * n, s, o, n, epsilon, out + r * n);
    });
  });
}

void layer_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& scale, double epsilon, Tensor& dx,
                         Tensor& dscale, Tensor& doffset) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    const std::int64_t n = scale.size(), rows = x.size() ? x.size() / n : 0;
    const std::int64_t piece = cut_of(kNormalizationCut, n).piece_of(rows),
                       pieces = rows ? (rows + piece - 1) / piece : 0;
    // Each piece of rows has partial sums, which are added in order.
    CachedVector<T> sums(static_cast<std::size_t>(2 * n * pieces), T(0));
    const T *d = elements<T>(dy), *in = elements<T>(x), *s = elements<T>(scale);
    T *out = elements<T>(dx), *parts = sums.data();
    parallel_for(rows, piece, [=](std::int64_t begin, std::int64_t end) {
      T* part = parts + begin / piece * 2 * n;
      for (std::int64_t r = begin; r < end; ++r)
        gradient_row(d + r * n, in + r * n, s, n, epsilon, out + r * n, part, part + n);
    });
    T *of_scale = elements<T>(dscale), *of_offset = elements<T>(doffset);
    std::fill_n(of_scale, n, T(0));
    std::fill_n(of_offset, n, T(0));
    for (std::int64_t p = 0; p < pieces; ++p, parts += 2 * n)
      for (std::int64_t i = 0; i < n; ++i)
        of_scale[i] += parts[i], of_offset[i] += parts[n + i];
  });
}

}   // namespace tapedeck::kernels
