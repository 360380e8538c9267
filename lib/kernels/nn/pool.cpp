// Pooling, vectorized over channels: for each output position and vector of channels, a loop over the
// window's cells. Threads split lines, which are rows of outputs, or own rows of the input's gradient.
#include "kernels/nn/pool.h"

#include <algorithm>
#include <limits>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "core/visit.h"
#include "kernels/nn/window.h"
#include "kernels/simd/lanes.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kPoolCut{1 << 16, 1 << 18};   // elements read

// Whether v replaces the largest value so far. The first NaN does, and stays.
bool beats(auto v, auto best) requires std::is_floating_point_v<decltype(v)> {
  return v > best || (v != v && best == best);
}
template <class T> xsimd::batch_bool<T> beats(const Batch<T>& v, const Batch<T>& best) {
  return (v > best) | (~(v == v) & (best == best));
}

/// A window's cells, or a part of them.
struct Window {
  PoolAxis::Cells rows, columns;

  std::int64_t width() const { return columns.end - columns.begin; }
  bool is_empty() const { return rows.begin >= rows.end || columns.begin >= columns.end; }
  template <class T> T count() const { return static_cast<T>((rows.end - rows.begin) * width()); }
  Window in_rows(std::int64_t begin, std::int64_t end) const {
    return {{std::max(rows.begin, begin), std::min(rows.end, end)}, columns};
  }
};

// Calls f(image, position in y, window) for the windows of output rows [begin, end) of an image.
template <class F>
void each_window(const Pool& p, std::int64_t image, std::int64_t begin, std::int64_t end, const F& f) {
  std::int64_t position = (image * p.rows.outputs() + begin) * p.columns.outputs();
  for (std::int64_t i = begin; i < end; ++i) {
    const PoolAxis::Cells rows = p.rows.cells[static_cast<std::size_t>(i)];
    for (const PoolAxis::Cells& columns : p.columns.cells)
      f(image, position++, Window{rows, columns});
  }
}

// a · b, or 0 if that overflows, which may happen for the strides of images without elements; these are never
// used.
std::int64_t stride_of(std::int64_t a, std::int64_t b) {
  std::int64_t stride;
  return __builtin_mul_overflow(a, b, &stride) ? 0 : stride;
}

double work_of_line(const Pooling& p) {
  return static_cast<double>(p.pool.columns.outputs()) * static_cast<double>(p.channels) *
         static_cast<double>(p.pool.rows.widest() * p.pool.columns.widest());
}

/// Calls f(image, position, window) for every window, in parallel.
template <class F> void for_outputs(const Pooling& p, const F& f) {
  if (p.channels == 0) return;
  const std::int64_t lines = p.pool.rows.outputs();
  parallel_for(p.images * lines, cut_of(kPoolCut, static_cast<std::int64_t>(std::min(work_of_line(p), 1e15))),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t line = begin; line < end; ++line)
                   each_window(p.pool, line / lines, line % lines, line % lines + 1, f);
               });
}

/// Cuts dx into tasks that own rows. Each task clears its rows, then calls f(image, position, window, owned)
/// for every window that reaches them, where `owned` is the part of the window to which f may write.
template <class T, class F> void for_inputs(const Pooling& p, T* dx, const F& f) {
  if (p.channels == 0) return;
  const PoolAxis& rows = p.pool.rows;
  const std::int64_t width = stride_of(p.pool.columns.extent, p.channels);
  const RowTasks tasks({rows.extent, rows.widest(), 1, 1, 0, rows.outputs()}, p.images,
                       work_of_line(p) * static_cast<double>(rows.outputs()),
                       static_cast<double>(kPoolCut.piece));
  const auto first_with = [&](const auto& f) {
    return std::partition_point(rows.cells.begin(), rows.cells.end(), f) - rows.cells.begin();
  };
  parallel_for(
      tasks.count(), Cut{1, kPoolCut.least / kPoolCut.piece}, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
          const RowTasks::Task t = tasks[i];
          const std::int64_t begin = first_with([&](const auto&c) { return c.end <= t.row_begin; }),
                             end = first_with([&](const auto&c) { return c.begin < t.row_end; });
          for (std::int64_t image = t.image_begin; image < t.image_end; ++image) {
            std::fill_n(dx + (image * rows.extent + t.row_begin) * width, (t.row_end - t.row_begin) * width,
                        T(0));
            each_window(p.pool, image, begin, end, [&](std::int64_t, std::int64_t position, const Window& w) {
              f(image, position, w, w.in_rows(t.row_begin, t.row_end));
            });
          }
        }
      });
}

/// The strides of images, rows and pixels.
struct PoolStrides {
  std::int64_t image, row, pixel;
  explicit PoolStrides(const Pooling& p)
      : image(stride_of(p.pool.rows.extent, stride_of(p.pool.columns.extent, p.channels))),
        row(stride_of(p.pool.columns.extent, p.channels)),
        pixel(p.channels) {}
};
// An image, from one channel on.
template <class T> struct Image {
  T* first;
  PoolStrides stride;

  Image(T* images, const PoolStrides& s, std::int64_t image, std::int64_t channel)
      : first(images + image * s.image + channel), stride(s) {}
  T* at(std::int64_t r, std::int64_t c) const { return first + r * stride.row + c * stride.pixel; }
  /// Calls f(element) for the cells of a window, in order.
  template <class F> void each(const Window& w, const F& f) const {
    for (std::int64_t r = w.rows.begin; r < w.rows.end; ++r)
      for (std::int64_t c = w.columns.begin; c < w.columns.end; ++c)
        f(at(r, c));
  }
};

/// For each channel of a vector, the largest cell and its index in the window; the first one of equal cells.
template <class V, class T> struct Largest {
  V value = V(-std::numeric_limits<T>::infinity()), number = V(T(0));

  Largest(const Image<const T>& x, const Window& w) {
    T n = 0;
    x.each(w, [&](const T* at) {
      const V v = load<V>(at);
      const auto better = beats(v, value);
      value = choose(better, v, value);
      number = choose(better, V(n), number);
      ++n;
    });
  }
};

template <class T> void run_max(const Pooling& p, const T* x, T* y) {
  for_outputs(p, [=, s = PoolStrides(p)](std::int64_t image, std::int64_t position, const Window& w) {
    each_group<T>(s.pixel, [&](std::int64_t channel, auto group) {
      store(Largest<decltype(group), T>(Image(x, s, image, channel), w).value,
            y + position * s.pixel + channel);
    });
  });
}

template <class T>
void run_max_with_positions(const Pooling& p, const T* x, bool through, T* y, std::int64_t* positions) {
  const std::int64_t width = p.pool.columns.extent, pixels = stride_of(p.pool.rows.extent, width);
  for_outputs(p, [=, s = PoolStrides(p)](std::int64_t image, std::int64_t position, const Window& w) {
    const std::int64_t before = through ? image * pixels : 0;
    each_group<T>(s.pixel, [&](std::int64_t channel, auto group) {
      using V = decltype(group);
      const Largest<V, T> best(Image(x, s, image, channel), w);
      const std::int64_t at = position * s.pixel + channel;
      store(best.value, y + at);
      T numbers[kWidth<T>];
      store(best.number, numbers);
      constexpr std::int64_t lanes = std::is_same_v<V, T> ? 1 : kWidth<T>;
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        if (w.is_empty()) {
          positions[at + lane] = -1;
          continue;
        }
        const auto n = static_cast<std::int64_t>(numbers[lane]);
        const std::int64_t pixel = (w.rows.begin + n / w.width()) * width + w.columns.begin + n % w.width();
        positions[at + lane] = (before + pixel) * s.pixel + channel + lane;
      }
    });
  });
}

template <class T>
void run_max_scatter(const Pooling& p, const T* dy, const T* x, std::int64_t x_images, T* dx) {
  for_inputs(p, dx,
             [=, s = PoolStrides(p)](std::int64_t image, std::int64_t position, const Window& w,
                                     const Window& owned) {
               each_group<T>(s.pixel, [&](std::int64_t channel, auto group) {
                 using V = decltype(group);
                 const Largest<V, T> best(Image(x, s, image % x_images, channel), w);
                 const auto known = best.value == best.value;
                 const V d = choose(known, load<V>(dy + position * s.pixel + channel), best.value);
                 T n = static_cast<T>((owned.rows.begin - w.rows.begin) * w.width());
                 Image(dx, s, image, channel).each(owned, [&](T* to) {
                   store(load<V>(to) + choose(known & !(best.number == V(n)), V(T(0)), d), to);
                   ++n;
                 });
               });
             });
}

template <class T>
void run_max_gather(const Pooling& p, const T* v, const T* x, std::int64_t x_images, T* y) {
  for_outputs(p, [=, s = PoolStrides(p)](std::int64_t image, std::int64_t position, const Window& w) {
    each_group<T>(s.pixel, [&](std::int64_t channel, auto group) {
      using V = decltype(group);
      const Largest<V, T> best(Image(x, s, image % x_images, channel), w);
      V found(T(0));
      T n = 0;
      Image(v, s, image, channel).each(w, [&](const T* from) {
        found = choose(best.number == V(n), load<V>(from), found);
        ++n;
      });
      store(choose(best.value == best.value, found, best.value), y + position * s.pixel + channel);
    });
  });
}

template <class T> void run_avg(const Pooling& p, const T* x, T* y) {
  for_outputs(p, [=, s = PoolStrides(p)](std::int64_t image, std::int64_t position, const Window& w) {
    each_group<T>(s.pixel, [&](std::int64_t channel, auto group) {
      using V = decltype(group);
      const Image from(x, s, image, channel);
      V total(T(0));
      // Sums each row of the window first, which keeps rounding errors of large windows small.
      for (std::int64_t r = w.rows.begin; r < w.rows.end; ++r) {
        V line(T(0));
        for (std::int64_t c = w.columns.begin; c < w.columns.end; ++c)
          line += load<V>(from.at(r, c));
        total += line;
      }
      store(total / V(w.count<T>()), y + position * s.pixel + channel);
    });
  });
}

template <class T> void run_avg_gradient(const Pooling& p, const T* dy, T* dx) {
  for_inputs(p, dx,
             [=, s = PoolStrides(p)](std::int64_t image, std::int64_t position, const Window& w,
                                     const Window& owned) {
               each_group<T>(s.pixel, [&](std::int64_t channel, auto group) {
                 using V = decltype(group);
                 const V share = load<V>(dy + position * s.pixel + channel) / V(w.count<T>());
                 Image(dx, s, image, channel).each(owned, [&](T* to) { store(load<V>(to) + share, to); });
               });
             });
}

}   // namespace

std::int64_t PoolAxis::widest() const {
  std::int64_t most = 1;
  for (const Cells& c : cells)
    most = std::max(most, c.end - c.begin);
  return most;
}

void max_pool(const Pooling& p, const Tensor& x, Tensor& y) {
  visit_floating(y.dtype(), [&](auto one) {
    using T = decltype(one);
    run_max(p, elements<T>(x), elements<T>(y));
  });
}

void max_pool_with_positions(const Pooling& p, const Tensor& x, bool through, Tensor& y, Tensor& position) {
  visit_floating(y.dtype(), [&](auto one) {
    using T = decltype(one);
    run_max_with_positions(p, elements<T>(x), through, elements<T>(y), elements<std::int64_t>(position));
  });
}

void max_pool_scatter(const Pooling& p, const Tensor& dy, const Tensor& x, std::int64_t x_images,
                      Tensor& dx) {
  visit_floating(dx.dtype(), [&](auto one) {
    using T = decltype(one);
    run_max_scatter(p, elements<T>(dy), elements<T>(x), x_images, elements<T>(dx));
  });
}

void max_pool_gather(const Pooling& p, const Tensor& v, const Tensor& x, std::int64_t x_images, Tensor& y) {
  visit_floating(y.dtype(), [&](auto one) {
    using T = decltype(one);
    run_max_gather(p, elements<T>(v), elements<T>(x), x_images, elements<T>(y));
  });
}

void avg_pool(const Pooling& p, const Tensor& x, Tensor& y) {
  visit_floating(y.dtype(), [&](auto one) {
    using T = decltype(one);
    run_avg(p, elements<T>(x), elements<T>(y));
  });
}

void avg_pool_gradient(const Pooling& p, const Tensor& dy, Tensor& dx) {
  visit_floating(dx.dtype(), [&](auto one) {
    using T = decltype(one);
    run_avg_gradient(p, elements<T>(dy), elements<T>(dx));
  });
}

}   // namespace tapedeck::kernels
